"""Replaying and giving up dead letters: which ones exactly, the question before, the sentence after."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from textual import work

from pgq_core.domain.filters import DeadLetterFilters
from pgq_core.domain.operation import BulkResult
from pgq_core.domain.snapshot import DeadGroup, DeadLetterView
from pgq_tui.backend.protocol import PAGE_SIZE
from pgq_tui.screens.dead_look import MOST_AT_ONCE
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.list_screen import ListScreen
from pgq_tui.view_model.chrome import Confirmation
from pgq_tui.view_model.figures import format_exact, plural
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.results import bulk_words
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.row_table import RowTable

SAMPLE = 8
MANY_REPLAYS = 100
_LONGEST_LINE = 120


@dataclass(frozen=True, slots=True)
class Chosen:
    """Exactly the dead letters an act is about, as they were when its key was pressed."""

    ids: tuple[int, ...]
    sample: tuple[DeadLetterView, ...] = ()


class DeadFlow(ListScreen):
    """For the screen of the dead letters."""

    page_size = PAGE_SIZE

    @property
    @abstractmethod
    def table(self) -> RowTable:
        """The rows, with cursor and marks."""

    @property
    @abstractmethod
    def is_grouped(self) -> bool:
        """Whether the rows are kinds of failure."""

    @property
    @abstractmethod
    def filters(self) -> DeadLetterFilters:
        """What the list is narrowed to."""

    @abstractmethod
    def known_letters(self) -> dict[int, DeadLetterView]:
        """The letters that are loaded."""

    @abstractmethod
    def known_groups(self) -> dict[str, DeadGroup]:
        """The groups that are loaded."""

    @work(group="acts", exit_on_error=False)
    async def action_replay(self) -> None:
        # Taken before anything is awaited: what comes or goes on the screen from now on changes nothing.
        chosen = await self._chosen(self.table.chosen_keys)
        if not chosen.ids or not await self.confirm(self._replay_question(chosen), "R"):
            return

        async def replay() -> Outcome:
            return _outcome(await self.session.backend.replay(chosen.ids), "replayed")

        if await self.perform(f"replay {_what(chosen)}", replay):
            self.table.clear_marks()

    @work(group="acts", exit_on_error=False)
    async def action_discard(self) -> None:
        chosen = await self._chosen(self.table.chosen_keys)
        if not chosen.ids or not await self.confirm(self._discard_question(chosen), "D"):
            return

        async def discard() -> Outcome:
            return _outcome(await self.session.backend.discard(chosen.ids), "discarded")

        if await self.perform(f"discard {_what(chosen)}", discard):
            self.table.clear_marks()

    @work(group="acts", exit_on_error=False)
    async def action_mark_all(self) -> None:
        """Every letter that matches the filter at this moment, whether it is loaded or not."""
        if self.is_grouped:
            self.table.mark(self.table.row_keys)
            return
        preview = await self.read(self.session.backend.preview_dead_letters(self.filters, MOST_AT_ONCE))
        if preview is not None:
            self.table.mark(str(letter_id) for letter_id in preview.ids)
            self.say(f"marked {plural(preview.count, 'dead letter')}: all that match now")

    async def _chosen(self, keys: Sequence[str]) -> Chosen:
        if not keys:
            return Chosen(())
        if self.is_grouped:
            return await self._members([self.known_groups()[key] for key in keys if key in self.known_groups()])
        ids = tuple(int(key) for key in keys)
        known = self.known_letters()
        return Chosen(ids, tuple(known[one] for one in ids if one in known)[:SAMPLE])

    async def _members(self, groups: Sequence[DeadGroup]) -> Chosen:
        """All letters of these kinds at this moment."""
        ids: list[int] = []
        sample: list[DeadLetterView] = []
        for group in groups:
            filters = DeadLetterFilters(fingerprint=group.fingerprint or "")
            preview = await self.read(self.session.backend.preview_dead_letters(filters, MOST_AT_ONCE))
            if preview is None:
                return Chosen(())
            ids += preview.ids
            sample += preview.sample
        return Chosen(tuple(ids), tuple(sample[:SAMPLE]))

    def _replay_question(self, chosen: Chosen) -> Confirmation:
        count = len(chosen.ids)
        queues = self._paused_queues(chosen)
        note = f"{', '.join(queues)} is paused: it waits there until somebody resumes." if queues else ""
        if count == 1:
            effect = (
                "It goes back to its queue with all its attempts; payload and key stay.\n"
                f"Another payload: pgq-core dead replay {chosen.ids[0]} --payload FILE"
            )
        else:
            effect = f"{plural(count, 'dead letter')} go back to their queues with all their attempts."
        challenge = str(count) if count > MANY_REPLAYS else ""
        lines = _lines(chosen)
        return Confirmation("Replay", effect, "replay", lines, count, note, challenge=challenge, token=Token.RETRY)

    def _discard_question(self, chosen: Chosen) -> Confirmation:
        count = len(chosen.ids)
        what, them = ("It is", "it") if count == 1 else (f"{plural(count, 'dead letter')} are", "them")
        effect = f"{what} given up for good. z takes it back until retention deletes {them}."
        return Confirmation(
            "Discard", effect, "discard", _lines(chosen), count, challenge=str(count) if count > 1 else ""
        )

    def _paused_queues(self, chosen: Chosen) -> list[str]:
        queues = self.session.overview.queues if self.session.overview else ()
        paused = {queue.name for queue in queues if queue.paused}
        return sorted(paused & {letter.queue for letter in chosen.sample})


def _lines(chosen: Chosen) -> tuple[str, ...]:
    return tuple(
        one_line(f"{letter.id} {letter.job_type or ''} · {letter.queue} · {letter.last_error}", _LONGEST_LINE)
        for letter in chosen.sample
    )


def _what(chosen: Chosen) -> str:
    return f"dead letter {chosen.ids[0]}" if len(chosen.ids) == 1 else f"{format_exact(len(chosen.ids))} dead letters"


def _outcome(result: BulkResult, done: str) -> Outcome:
    return Outcome(bulk_words(result, done), result.operation_id if result.done else None, is_failure=not result.done)
