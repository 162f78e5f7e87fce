"""The jobs of the torture runs, in workers that write down how long each of their claims took."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pgq_core.worker.search import Search
from tests.torture import jobs as _jobs  # noqa: F401  # registers them
from tests.torture.ledger import LEDGER_VARIABLE


def claims_file(ledger: Path) -> Path:
    return ledger.with_name("claims")


def durations(ledger: Path) -> list[tuple[float, float]]:
    """When each claim was answered, and after how many seconds: as its worker saw it."""
    lines = claims_file(ledger).read_text().splitlines()
    return [(float(at), float(took)) for at, _, took in (line.partition(" ") for line in lines)]


def _timed(fetch: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    file = os.open(claims_file(Path(os.environ[LEDGER_VARIABLE])), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    async def timed(*args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        rows = await fetch(*args, **kwargs)
        os.write(file, f"{time.time():.3f} {time.monotonic() - began:.6f}\n".encode())
        return rows

    return timed


if LEDGER_VARIABLE in os.environ:  # in a worker; the test itself only reads
    Search._fetch = _timed(Search._fetch)  # type: ignore[method-assign]
