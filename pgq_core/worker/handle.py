"""What a keeper knows of one runner."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from enum import StrEnum

from pgq_core.domain.health import LoopHealth, encode_loops
from pgq_core.queries.upkeep import Beat
from pgq_core.worker.child import Child
from pgq_core.worker.exits import RunnerExit
from pgq_core.worker.marks import Marks
from pgq_core.worker.spec import RunnerSpec

KEPT_LINES = 20


class RunnerState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    EXITED = "exited"


class Intent(StrEnum):
    """What the keeper has decided about a runner; decides how its end is understood."""

    RUN = "run"
    DRAIN = "drain"
    STOP = "stop"
    FENCE = "fence"
    OVERDUE = "overdue"


class RunnerHandle:
    """One runner, from its start to its recorded end. Read only for everybody but the keeper."""

    def __init__(self, worker_id: str, spec: RunnerSpec, marks: Marks, *, slot: int) -> None:
        self.worker_id = worker_id
        self.spec = spec
        self.started_at = time.monotonic()
        self.state = RunnerState.STARTING
        self.exit: RunnerExit | None = None
        self.job_types: tuple[str, ...] = ()
        self.cpu_percent: float | None = None
        self.rss_bytes: int | None = None
        self.is_suspended = False
        self.marks = marks
        self.slot = slot
        self.child: Child
        self.intent = Intent.RUN
        self.intent_reason = ""
        self.kill_at: float | None = None
        """Monotonic time from which on a leaving runner is killed."""
        self.leaving = ""
        """Why the runner says it leaves, in its own words."""
        self.is_refused = False
        self.is_finished = False
        self.counted: tuple[int, int, int, int] = (0, 0, 0, 0)
        self._output: deque[str] = deque(maxlen=KEPT_LINES)
        self._ended = asyncio.Event()

    def __repr__(self) -> str:
        return f"<runner {self.worker_id} {self.state}>"

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def recent_output(self) -> tuple[str, ...]:
        """Its last lines, of both streams."""
        return tuple(self._output)

    @property
    def running(self) -> int:
        return self.counters()[0]

    @property
    def finished(self) -> int:
        return self.counters()[1]

    @property
    def failed(self) -> int:
        return self.counters()[2]

    @property
    def late_writes(self) -> int:
        return self.counters()[3]

    @property
    def lived(self) -> float:
        return time.monotonic() - self.started_at

    async def wait(self) -> RunnerExit:
        """Until the process is gone. What it held may still be on its way back to the database."""
        await self._ended.wait()
        if self.exit is None:
            raise RuntimeError(f"{self!r} ended without an exit")
        return self.exit

    def counters(self) -> tuple[int, int, int, int]:
        """Running, finished, failed, late writes: live while it lives, then as they were at its end."""
        if self.exit is None:
            marks = self.marks
            self.counted = (marks.running, marks.finished, marks.failed, marks.late_writes)
        return self.counted

    def beat(self, loops: Iterable[LoopHealth] = ()) -> Beat:
        """What is to be said of it now; measures its process."""
        self.cpu_percent, self.rss_bytes = self.child.usage()
        running, finished, failed, late_writes = self.counters()
        return Beat(
            self.worker_id,
            self.pid,
            self.state,
            running,
            finished,
            failed,
            late_writes,
            self.cpu_percent,
            self.rss_bytes,
            encode_loops(loops),
        )

    def keep_lines(self, lines: list[str]) -> None:
        self._output.extend(lines)

    def end(self, ended: RunnerExit) -> None:
        self.counters()
        self.exit = ended
        self.state = RunnerState.EXITED
        self._ended.set()
