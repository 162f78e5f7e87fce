"""What became of a verb, in a sentence."""

from __future__ import annotations

from pgq_core.domain.operation import ActionResult, BulkResult
from pgq_tui.view_model.figures import format_exact
from pgq_tui.view_model.safe_text import one_line

_LONGEST_REASON = 160


def bulk_words(result: BulkResult, done: str) -> str:
    """How many were done, how many refused, and why the first of those was.

    >>> from pgq_core.domain.operation import ItemResult
    >>> bulk_words(BulkResult(7, (ItemResult(1), ItemResult(2), ItemResult(3, "already replayed by ada"))), "replayed")
    'replayed 2 · refused 1 (already replayed by ada)'
    >>> bulk_words(BulkResult(7, (ItemResult(1, job_id=42),)), "replayed"), bulk_words(BulkResult(None), "discarded")
    ('replayed 1 as job 42', 'discarded 0')
    """
    words = f"{done} {format_exact(result.done)}"
    if result.done == 1 and (follow_up := next((one.job_id for one in result.items if one.job_id), None)):
        words += f" as job {follow_up}"
    refusals = [item.refusal for item in result.items if item.refusal is not None]
    if refusals:
        kinds = "" if len(set(refusals)) == 1 else ", and other reasons"
        words += f" · refused {format_exact(len(refusals))} ({one_line(refusals[0], _LONGEST_REASON)}{kinds})"
    return words


def cancel_words(result: BulkResult) -> str:
    """What became of a cancel: final, or asked of a worker.

    >>> from pgq_core.domain.operation import ItemResult
    >>> cancel_words(BulkResult(7, (ItemResult(1, answer="requested"),)))
    'its worker was asked to stop; it may still succeed'
    """
    item = result.items[0] if result.items else None
    if item is None:
        return "nothing was cancelled"
    if item.refusal is not None:
        return f"refused: {one_line(item.refusal, _LONGEST_REASON)}"
    return "its worker was asked to stop; it may still succeed" if item.answer == "requested" else "cancelled"


def action_words(result: ActionResult, done: str) -> str:
    """What became of a verb on one queue, pool or worker."""
    return done if result.refusal is None else f"refused: {one_line(result.refusal, _LONGEST_REASON)}"
