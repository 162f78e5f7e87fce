"""Verbs on queues and pools, as keys and the command line use them."""

from __future__ import annotations

from pgq_core.domain.snapshot import ActionResult
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.journal import Outcome
from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.results import action_words


async def pause_queue(screen: ConsoleScreen, name: str, reason: str | None) -> None:
    async def pause() -> Outcome:
        return outcome_of(await screen.session.backend.pause(name, reason), "paused")

    await screen.perform(f"pause {name}", pause)


async def resume_queue(screen: ConsoleScreen, name: str) -> None:
    async def resume() -> Outcome:
        return outcome_of(await screen.session.backend.resume(name), "resumed")

    await screen.perform(f"resume {name}", resume)


async def scale_pool(screen: ConsoleScreen, host: str, pool: str, wanted: int) -> None:
    async def scale() -> Outcome:
        result = await screen.session.backend.scale(host, pool, wanted)
        return outcome_of(result, f"wants {plural(wanted, 'worker')}")

    await screen.perform(f"scale {pool}", scale)


def outcome_of(result: ActionResult, done: str, *, can_undo: bool = True) -> Outcome:
    """What became of a verb on one thing."""
    operation = result.operation_id if can_undo and result.refusal is None else None
    return Outcome(action_words(result, done), operation, is_failure=result.refusal is not None)
