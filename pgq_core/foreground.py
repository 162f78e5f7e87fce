"""The process of `pgq-core worker` itself: a keeper, and maintenance and metrics beside it, without its command line.

The command replaces itself by this program once it knows everything. What the command line, its colours and its
validation brought into memory is gone then: a keeper lives as long as its worker, and needs none of it.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NoReturn

from pgq_core.plain_settings import PlainSettings

_START: Final = (
    "import sys; sys.path.append(sys.argv[1]); from pgq_core.foreground import main; sys.exit(main(int(sys.argv[2])))"
)
_NEEDLESS: Final = ("rich", "ssl", "_hashlib", "greenlet", "bz2", "lzma")
"""What would be imported if it can be, and nobody here needs: the driver brings its TLS, Python its own digests, and
no archive is opened."""
_USAGE: Final = 2


@dataclass(frozen=True, slots=True)
class ForegroundOrders:
    """All that the command was told. `settings.dsn` is resolved."""

    settings: PlainSettings
    apps: tuple[str, ...]
    pool: str | None
    burst: bool
    reload: bool
    with_maintenance: bool
    metrics_port: int | None
    metrics_host: str

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, text: bytes) -> ForegroundOrders:
        values = json.loads(text)
        settings = PlainSettings.from_json(values["settings"])
        return cls(**{**values, "settings": settings, "apps": tuple(values["apps"])})


def run_foreground(orders: ForegroundOrders) -> int:
    """Until the worker ends; answers the exit code."""
    from pgq_core.service import Service
    from pgq_core.worker import WorkerOptions, run_worker

    settings = orders.settings
    services: list[Service] = []
    if orders.with_maintenance:
        from pgq_core.maintenance import Maintenance

        services.append(Maintenance(settings))
    if orders.metrics_port is not None:
        from pgq_core.metrics import metrics_server

        services.append(metrics_server(settings, orders.metrics_port, host=orders.metrics_host))
    options = WorkerOptions(settings, orders.apps, pool=orders.pool, burst=orders.burst, reload=orders.reload)
    return run_worker(options, services)


def become_foreground(orders: ForegroundOrders) -> NoReturn:
    """Replaces this process. The orders go through a pipe: a command line would show the password of the DSN."""
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(orders.encode())
    sys.stdout.flush()
    sys.stderr.flush()
    home = str(Path(__file__).parents[1])
    # -P: a module of the application's directory must not stand in for one of Python's.
    arguments = ["-P", "-c", _START, home, str(reader), "worker", *orders.apps]
    os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - our own interpreter


def leave_out_needless() -> None:
    for name in _NEEDLESS:
        sys.modules[name] = None  # type: ignore[assignment]  # an import of it fails, as if it were missing


def main(descriptor: int) -> int:
    with os.fdopen(descriptor, "rb") as pipe:
        orders = ForegroundOrders.decode(pipe.read())
    if orders.metrics_port is None:
        leave_out_needless()
    from pgq_core.errors import InvalidSettings

    try:
        return run_foreground(orders)
    except InvalidSettings as error:
        print(error, file=sys.stderr)  # noqa: T201 - words for the person at the terminal
        return _USAGE
