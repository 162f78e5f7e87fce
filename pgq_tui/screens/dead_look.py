"""One look at the dead letters: a page of them or all their kinds, and what is known of the selected row."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from pgq_core.domain.filters import DeadLetterFilters
from pgq_core.domain.snapshot import Count, DeadGroup, DeadLetterDetail, DeadLetterView
from pgq_tui.backend.protocol import Backend
from pgq_tui.view_model.dead_table import group_key

MEMBERS_SHOWN = 20
MOST_AT_ONCE = 100_000
"""So many dead letters are marked or acted on at most; more are done by acting again."""


@dataclass(frozen=True, slots=True)
class DeadQuestion:
    """What was asked: an answer to another question than the present one is not shown."""

    filters: DeadLetterFilters
    before: int | None
    is_grouped: bool
    checks_marks: bool = False
    """Whether to find out which letters there are at all: marks were made before the database went away."""


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
    alive: frozenset[str] | None = None
    """Keys of all rows that could be marked; None when nobody asked."""


async def look_at(backend: Backend, question: DeadQuestion, selected: str | None) -> DeadArrived:
    """Read what was asked for; without a selected row the first one is looked into."""
    if question.is_grouped:
        return await _groups(backend, question, selected)
    letters = await backend.dead_letters(question.filters, question.before)
    total = await backend.count_dead_letters(question.filters)
    wanted = selected or (str(letters[0].id) if letters else "")
    letter = await backend.dead_letter(int(wanted)) if wanted.isdigit() else None
    alive = None
    if question.checks_marks:
        alive = frozenset(map(str, (await backend.preview_dead_letters(question.filters, MOST_AT_ONCE)).ids))
    return DeadArrived(question, total, letters=letters, letter=letter, alive=alive)


async def _groups(backend: Backend, question: DeadQuestion, selected: str | None) -> DeadArrived:
    groups = await backend.dead_groups()
    total = await backend.count_dead_letters(DeadLetterFilters())
    group = next((one for one in groups if group_key(one) == selected), groups[0] if groups else None)
    if group is None:
        return DeadArrived(question, total, alive=frozenset() if question.checks_marks else None)
    members = await backend.dead_letters(DeadLetterFilters(fingerprint=group.fingerprint or ""), None)
    alive = frozenset(group_key(one) for one in groups) if question.checks_marks else None
    shown = (group_key(group), members[:MEMBERS_SHOWN])
    return DeadArrived(question, total, groups=groups, members=shown, alive=alive)
