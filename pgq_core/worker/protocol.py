"""What keeper and runner say to each other: orders at the start, reports on the way, an exit code at the end."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from enum import IntEnum, StrEnum
from typing import Any

from pgq_core.plain_settings import AnySettings, PlainSettings, plain

ORDERS_VARIABLE = "PGQ_RUNNER_ORDERS"
"""Names the descriptor on which the orders wait; its end of file means that the keeper is gone."""


class RunnerExitCode(IntEnum):
    """How a runner that could still choose ended."""

    DONE = 0
    FAILED = 1
    REFUSED = 3
    FENCED = 75
    STUCK = 76
    SPOILED = 77


class ReportKind(StrEnum):
    READY = "ready"  # detail: nothing; job_types say what it can run
    DRAINING = "draining"  # detail: why
    FINISHED = "finished"  # a burst is over
    REFUSED = "refused"  # detail: why it cannot start
    LEAVING = "leaving"  # detail: why it gives itself up


@dataclass(frozen=True, slots=True)
class Report:
    """One line from the runner to its keeper."""

    kind: ReportKind
    detail: str = ""
    job_types: tuple[str, ...] = ()

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> Report:
        values = json.loads(line)
        return cls(ReportKind(values["kind"]), str(values["detail"]), tuple(values["job_types"]))


@dataclass(frozen=True, slots=True)
class RunnerOrders:
    """What a runner gets at its start, on a pipe: a command line or an environment would show the DSN's password."""

    worker_id: str
    slot: int
    apps: tuple[str, ...]
    queues: tuple[str, ...]
    concurrency: int
    burst: bool
    settings: AnySettings
    report_descriptor: int
    marks_descriptor: int

    def encode(self) -> bytes:
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        values["settings"] = asdict(plain(self.settings))
        return json.dumps(values).encode() + b"\n"

    @classmethod
    def decode(cls, line: bytes) -> RunnerOrders:
        values = json.loads(line)
        values["settings"] = PlainSettings.from_json(values["settings"])
        values["apps"] = tuple(values["apps"])
        values["queues"] = tuple(values["queues"])
        return cls(**values)


def read_orders(descriptor: int) -> RunnerOrders:
    """The one line of orders; the descriptor stays open, as the runner's sign that its keeper lives."""
    received = b""
    while not received.endswith(b"\n"):
        chunk = os.read(descriptor, 65536)
        if not chunk:
            raise EOFError("the keeper went away before it gave orders")
        received += chunk
    return RunnerOrders.decode(received)
