"""What is asked before the console ends while workers that it brought up still run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from pgq_core.domain.snapshot import Overview
from pgq_tui.supervisor.fate import Fate
from pgq_tui.view_model.chrome import Choice
from pgq_tui.view_model.figures import plural


@dataclass(frozen=True, slots=True)
class LocalWorkers:
    """The supervisor that this console started on this host. `stop` drains its workers and ends it.

    `fate` says what became of it; it raises DatabaseUnavailable when nobody can tell.
    """

    host: str
    supervisor_id: str
    stop: Callable[[], Awaitable[bool]]
    fate: Callable[[], Awaitable[Fate]]

    def count(self, view: Overview | None) -> int:
        """How many workers it keeps now."""
        workers = view.workers if view else ()
        return sum(worker.supervisor_id == self.supervisor_id and worker.stopped_at is None for worker in workers)

    def are_in_charge(self, view: Overview | None) -> bool:
        """Whether something would stay behind: a supervisor does so without workers too, to start them later."""
        known = [one for one in (view.supervisors if view else ()) if one.host == self.host]
        ours = [one for one in known if one.supervisor_id == self.supervisor_id and not one.is_stale]
        return bool(ours or not known or self.count(view))


def leaving_words(count: int) -> str:
    if not count:
        return "The supervisor that this console started on this host runs no worker right now."
    return f"{plural(count, 'worker')} of this host run under the supervisor that this console started."


LEAVE_RUNNING = "leave"
DRAIN = "drain"


def leaving_choices() -> tuple[Choice, ...]:
    """The first is what enter takes."""
    return (
        Choice(LEAVE_RUNNING, "d", "leave running", "they work on; the next pgq-tui finds them again"),
        Choice(DRAIN, "s", "drain and stop", "finish what runs, then end them"),
    )
