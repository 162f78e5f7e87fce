"""Following the stream of runs: each run once, although runs may be committed out of the order of their ids."""

from __future__ import annotations

from collections.abc import Sequence

from pgq_core.domain.snapshot import RunView

_KEPT = 2000


class RunTail:
    """Remembers how far a follower has come, and which ids near that point it has seen."""

    def __init__(self) -> None:
        self.last_id = 0
        self._seen: set[int] = set()

    @property
    def seen(self) -> tuple[int, ...]:
        """The ids that a next read need not bring again."""
        return tuple(sorted(self._seen))

    def fresh(self, runs: Sequence[RunView]) -> tuple[RunView, ...]:
        """Those of `runs` that were not given before, in the order of their ids."""
        new = sorted((run for run in runs if run.id not in self._seen), key=_run_id)
        self._seen.update(run.id for run in new)
        if self._seen:
            self.last_id = max(self._seen)
            self._seen = {run_id for run_id in self._seen if run_id > self.last_id - _KEPT}
        return tuple(new)


def _run_id(run: RunView) -> int:
    return run.id
