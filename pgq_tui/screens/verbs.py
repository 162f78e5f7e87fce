"""Verbs on queues and pools, as keys and the command line use them."""

from __future__ import annotations

from pgq_core.domain.audit import AuditRule, kept_runs
from pgq_core.domain.operation import ActionResult
from pgq_core.domain.snapshot import Overview, QueueView
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.journal import Outcome
from pgq_tui.view_model.audit_choice import fewer_kept, rule_of
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


async def set_audit(screen: ConsoleScreen, queue: QueueView, rule: AuditRule) -> None:
    """Asks before a queue keeps less than it does; must be called inside a worker."""
    before, words = rule_of(queue), f"keeps {kept_runs(rule.audit, rule.share)}"
    if rule == before:
        screen.say(f"{queue.name} {words} already")
        return
    question = fewer_kept(queue.name, before, rule)
    if question is not None and not await screen.confirm(question, "A"):
        return

    async def change() -> Outcome:
        return outcome_of(await screen.session.backend.set_audit(queue.name, rule), words)

    await screen.perform(f"audit {queue.name}", change)


async def scale_pool(screen: ConsoleScreen, host: str, pool: str, wanted: int) -> None:
    async def scale() -> Outcome:
        result = await screen.session.backend.scale(host, pool, wanted)
        return outcome_of(result, wanted_words(screen.session.overview, host, pool, wanted))

    await screen.perform(f"scale {pool}", scale)


def wanted_words(view: Overview | None, host: str, pool: str, wanted: int) -> str:
    """What a pool wants now and wanted before, and that nobody hears it where no supervisor keeps it."""
    before = next((one.wanted for one in view.pools if (one.host, one.name) == (host, pool)), None) if view else None
    was = "" if before in {None, wanted} else f", {before} before"
    words = f"wants {plural(wanted, 'worker')}{was}"
    if view is None or any((one.host, one.name) == (host, pool) and one.has_supervisor for one in view.pools):
        return words
    if any(one.host == host and not one.is_stale for one in view.supervisors):
        return f"{words}; the supervisor on {host} does not know this pool, nothing will start until one does"
    return f"{words}; no supervisor runs on {host}, nothing will start until one does"


def outcome_of(result: ActionResult, done: str, *, can_undo: bool = True) -> Outcome:
    """What became of a verb on one thing."""
    operation = result.operation_id if can_undo and result.refusal is None else None
    return Outcome(action_words(result, done), operation, is_failure=result.refusal is not None)
