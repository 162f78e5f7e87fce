"""One look at the dead letters: a page of them or all their kinds, and what is known of the selected row."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from pgq_core.domain.filters import DeadLetterFilters
from pgq_core.domain.snapshot import Count, DeadGroup, DeadLetterDetail, DeadLetterView
from pgq_tui.backend.protocol import Backend
from pgq_tui.view_model.dead_table import group_key

MEMBERS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class DeadQuestion:
    """What was asked: an answer to another question than the present one is not shown."""

    filters: DeadLetterFilters
    before: int | None
    is_grouped: bool


@dataclass
class DeadArrived(Message):
    """One answer: a page of letters or all groups, and the detail of the selected row."""

    question: DeadQuestion
    total: Count
    letters: tuple[DeadLetterView, ...] = ()
    groups: tuple[DeadGroup, ...] = ()
    letter: DeadLetterDetail | None = None
    members: tuple[str, tuple[DeadLetterView, ...]] | None = None
    """The key of the selected group, and its newest letters."""


async def look_at(backend: Backend, question: DeadQuestion, selected: str | None) -> DeadArrived:
    """Read what was asked for; without a selected row the first one is looked into."""
    if question.is_grouped:
        return await _groups(backend, question, selected)
    letters = await backend.dead_letters(question.filters, question.before)
    total = await backend.count_dead_letters(question.filters)
    wanted = selected or (str(letters[0].id) if letters else "")
    letter = await backend.dead_letter(int(wanted)) if wanted.isdigit() else None
    return DeadArrived(question, total, letters=letters, letter=letter)


async def _groups(backend: Backend, question: DeadQuestion, selected: str | None) -> DeadArrived:
    groups = await backend.dead_groups()
    total = await backend.count_dead_letters(DeadLetterFilters())
    group = next((one for one in groups if group_key(one) == selected), groups[0] if groups else None)
    if group is None:
        return DeadArrived(question, total)
    members = await backend.dead_letters(DeadLetterFilters(fingerprint=group.fingerprint or ""), None)
    return DeadArrived(question, total, groups=groups, members=(group_key(group), members[:MEMBERS_SHOWN]))
