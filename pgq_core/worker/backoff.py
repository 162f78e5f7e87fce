"""How long a dead runner's successor has to wait."""

from __future__ import annotations

from random import Random

from pgq_core.worker.exits import ExitKind, RunnerExit

_WITHOUT_BLAME = frozenset((ExitKind.STOPPED, ExitKind.FINISHED, ExitKind.REPLACE))


class RestartBackoff:
    """Pauses that double with each death up to a cap, and start anew after a healthy life. Pure: time is passed in."""

    def __init__(
        self,
        *,
        base: float = 0.5,
        cap: float = 60.0,
        healthy_after: float = 30.0,
        crash_loop_after: int = 5,
        random: Random | None = None,
    ) -> None:
        self._base = base
        self._cap = cap
        self._healthy_after = healthy_after
        self._crash_loop_after = crash_loop_after
        self._random = random or Random()  # noqa: S311 - spreads restarts, guards nothing
        self.deaths = 0

    @property
    def is_crash_loop(self) -> bool:
        """Whether it has died this often in a row without ever living long enough to count as healthy."""
        return self.deaths >= self._crash_loop_after

    def healthy(self) -> None:
        """A runner has lived long enough: what was before is forgiven."""
        self.deaths = 0

    def delay_after(self, ended: RunnerExit) -> float:
        """Seconds to wait before the next start."""
        if ended.lived >= self._healthy_after:
            self.healthy()
        if ended.kind in _WITHOUT_BLAME:
            return 0.0
        ceiling = min(self._cap, self._base * 2.0 ** min(self.deaths, 30))
        self.deaths += 1
        return ceiling * self._random.uniform(0.5, 1.0)
