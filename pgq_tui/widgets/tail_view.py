"""A live tail: it follows what arrives, stands still when the operator looks, and keeps its place by record."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.message import Message

from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.found_marks import mark_found
from pgq_tui.view_model.tail_buffer import TailBuffer
from pgq_tui.view_model.tail_record import LONGEST_LINE, RuleRecord, TailOptions, TailRecord
from pgq_tui.view_model.tail_title import tail_state, tail_title
from pgq_tui.widgets.line_view import LineView

KEPT_RECORDS = 50_000
_SIDEWAYS = 8


class TailView(LineView):
    """Lines that arrive in batches. Following, filters, search and the sideways scroll do not disturb one another."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tail-view--cursor", "tail-view--match"}

    DEFAULT_CSS = """
    TailView {
        & > .tail-view--cursor { background: $block-cursor-blurred-background; }
        &:focus > .tail-view--cursor {
            background: $block-cursor-background;
            text-style: $block-cursor-text-style;
        }
        & > .tail-view--match { background: $warning 35%; text-style: bold; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f,space", "follow", "Follow or pause", id="tail.follow", show=False),
        Binding("enter", "choose", "Open", id="tail.choose", show=False),
        Binding("n", "find(1)", "Next hit", id="tail.next_hit", show=False),
        Binding("N", "find(-1)", "Previous hit", id="tail.previous_hit", show=False),
        Binding("left", "sideways(-1)", "Scroll left", id="tail.left", show=False),
        Binding("right", "sideways(1)", "Scroll right", id="tail.right", show=False),
    ]

    class Selected(Message):
        """The operator opened a record."""

        def __init__(self, tail: TailView, key: Hashable) -> None:
            super().__init__()
            self.tail = tail
            self.key = key

        @property
        def control(self) -> TailView:
            """The tail it happened in."""
            return self.tail

    class FollowChanged(Message):
        """The tail began or ceased to follow, or the number of unseen lines changed."""

        def __init__(self, tail: TailView, *, follow: bool, unseen: int) -> None:
            super().__init__()
            self.tail = tail
            self.follow = follow
            self.unseen = unseen

        @property
        def control(self) -> TailView:
            """The tail it happened in."""
            return self.tail

    def __init__(
        self,
        title: str = "",
        *,
        kept: int = KEPT_RECORDS,
        empty: str = "nothing yet",
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(empty=empty, id=id, classes=classes)
        self._title = title
        self._buffer = TailBuffer(kept)
        self._options = TailOptions()
        self._cursor: int | None = None
        self._left = 0
        self._widest = 0
        self._follow = True
        self._unseen = 0
        self._is_placing = False
        self._arrived = 0
        """Records since the pause, whether the filter shows them or not."""

    @property
    def follow(self) -> bool:
        """Whether the newest line stays in sight."""
        return self._follow

    @property
    def unseen(self) -> int:
        """Lines that came while the tail was paused and pass the filter."""
        return self._unseen

    @property
    def cursor_record(self) -> TailRecord | None:
        """The record under the cursor, the newest one while the tail follows."""
        if not self._buffer:
            return None
        return self._buffer[-1 if self._cursor is None else self._cursor]

    @property
    def hits(self) -> int:
        """How many shown records the search finds."""
        return self._buffer.hits

    @property
    def line_count(self) -> int:
        """How many records pass the filter."""
        return len(self._buffer)

    @property
    def empty_words(self) -> str:
        """Why there is nothing: nothing came, or the filter hides it."""
        if self._buffer.is_filtered and self._buffer.kept:
            return f"none of {plural(self._buffer.kept, 'line')} passes the filter"
        return super().empty_words

    @property
    def columns_left_out(self) -> int:
        """How far the lines are scrolled sideways."""
        return self._left

    def on_mount(self) -> None:
        """Draw in the colours of the theme."""
        super().on_mount()
        self.set_options(self._options)

    def extend(self, records: Iterable[TailRecord]) -> None:
        """Add a batch at the end; the oldest records beyond the limit go."""
        batch = list(records)
        if not batch:
            return
        top = self.scroll_offset.y
        gone, added = self._buffer.extend(batch)
        if self._cursor is not None:
            self._cursor = max(self._cursor - gone, 0)
        self.lines_changed()
        if self._follow:
            self._scroll_to_end()
            self._show_state()
            return
        # What the operator looks at stays where it is, though lines left above it.
        if gone:
            self.scroll_row(top - gone)
        self._arrived += len(batch)
        self._unseen += added
        self._tell()

    def draw_rule(self, key: Hashable, label: str) -> None:
        """Draw a line across the tail, to find the place again; every filter lets it pass."""
        self.extend([RuleRecord(key, label)])

    def clear(self) -> None:
        """Forget all records and follow again."""
        self._buffer.clear()
        self._left, self._widest = 0, 0
        self.lines_changed()
        self.action_last_line()

    def set_title_text(self, title: str) -> None:
        """What stands at the left of the upper line."""
        self._title = title
        self._show_state()

    def set_filter(self, text: str) -> None:
        """Show only records that contain the text, whatever the case; empty shows all."""
        held = self._held()
        self._buffer.set_filter(text)
        self._put_back(held)

    def set_levels(self, levels: Collection[str] | None) -> None:
        """Show only records of these levels or outcomes; None shows all."""
        held = self._held()
        self._buffer.set_levels(levels)
        self._put_back(held)

    def set_options(self, options: TailOptions) -> None:
        """How lines are drawn; palette, signs and theme are those of the app, whatever the options say."""
        self._options = TailOptions(options.times, options.zone, options.now, self.palette, self.app.theme, self.glyphs)
        self.refresh()
        self._show_state()

    def find(self, text: str) -> int:
        """Highlight a text without hiding the rest, go to the nearest hit above the end, and count those seen."""
        self._buffer.set_needle(text)
        self._go_to_hit(self._place(), -1)
        self._show_state()
        self.refresh()
        return self._buffer.hits_among(self._seen)

    def action_find(self, direction: int) -> None:
        """Go to the next hit below (1) or above (-1), round the end."""
        self._go_to_hit(self._place() + direction, direction)

    def action_follow(self) -> None:
        """Pause, or go to the end and follow."""
        if self._follow:
            self._set_follow(follow=False)
        else:
            self.action_last_line()

    def action_choose(self) -> None:
        """Open the record under the cursor."""
        if (record := self.cursor_record) is not None:
            self.post_message(self.Selected(self, record.key))

    def action_sideways(self, direction: int) -> None:
        """Scroll all lines left or right."""
        furthest = max(self._widest - self.size.width // 2, 0)
        self._left = max(0, min(self._left + direction * _SIDEWAYS, furthest))
        self.refresh()

    def action_line_up(self) -> None:
        """Cursor to the record above."""
        self._move_cursor(-1)

    def action_line_down(self) -> None:
        """Cursor to the record below."""
        self._move_cursor(1)

    def action_half_page(self, direction: int) -> None:
        """Cursor half a window up or down."""
        self._move_cursor(direction * max(self.page_rows // 2, 1))

    def action_whole_page(self, direction: int) -> None:
        """Cursor a window up or down."""
        self._move_cursor(direction * max(self.page_rows - 1, 1))

    def action_first_line(self) -> None:
        """Cursor to the oldest record."""
        self._move_cursor(-len(self._buffer))

    def action_last_line(self) -> None:
        """To the end, and follow."""
        self._cursor = None
        self._set_follow(follow=True)

    def on_click(self, event: Click) -> None:
        """A click puts the cursor on a record, a second one opens it."""
        offset = event.get_content_offset(self)
        index = self.scroll_offset.y + offset.y if offset else -1
        if not 0 <= index < len(self._buffer):
            return
        if index == self._cursor:
            self.action_choose()
        else:
            self._set_follow(follow=False)
            self._put_cursor(index)

    def on_resize(self, _: Resize) -> None:
        """Keep the end in sight while following."""
        self.lines_changed()
        if self._follow:
            self._scroll_to_end()

    def scroll_row(self, row: int) -> None:
        """Put a line at the top; unlike a scroll by the mouse this says nothing about following."""
        self._is_placing = True
        super().scroll_row(row)
        self._is_placing = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling up stops following; scrolling down to the end resumes it."""
        super().watch_scroll_y(old_value, new_value)
        if self._is_placing:
            return
        at_end = round(new_value) >= self.max_scroll_y
        if new_value < old_value and not at_end:
            self._set_follow(follow=False)
        elif new_value > old_value and at_end and self._cursor is None:
            self._set_follow(follow=True)

    def line_text(self, index: int) -> Text:
        """The record drawn, with the hits of the search marked."""
        text = self._buffer[index].render(self.size.width, self._options)
        self._widest = max(self._widest, min(text.cell_len, LONGEST_LINE))
        if self._buffer.needle:
            mark_found(text, self._buffer.needle, self.get_component_rich_style("tail-view--match"))
        return text

    def line_key(self, index: int) -> Hashable:
        """Record, options, search and width make the picture of a line."""
        return self._buffer[index].key, self._options, self._buffer.needle, self.size.width

    def line_style(self, index: int) -> Style | None:
        """The cursor line stands out."""
        return self.get_component_rich_style("tail-view--cursor") if index == self._cursor else None

    def notify_style_update(self) -> None:
        """Draw in the new colours."""
        super().notify_style_update()
        if self.is_attached:
            self.set_options(self._options)

    @property
    def _seen(self) -> int:
        """How many lines there were when the tail was paused; what came later is counted, and not looked through."""
        return max(len(self._buffer) - self._unseen, 0)

    def _place(self) -> int:
        """The line a search starts from."""
        return self._seen - 1 if self._cursor is None else self._cursor

    def _go_to_hit(self, start: int, direction: int) -> None:
        found = self._buffer.next_hit(start, direction, self._seen)
        if found is not None:
            self._set_follow(follow=False)
            self._put_cursor(found)

    def _held(self) -> tuple[TailRecord, int] | None:
        """The record the eye holds on to while the tail is paused, and its row in the window."""
        top = self.scroll_offset.y
        index = self._cursor if self._cursor is not None else top
        return (self._buffer[index], index - top) if index < len(self._buffer) and not self._follow else None

    def _put_back(self, held: tuple[TailRecord, int] | None) -> None:
        """After the filter changed: the same record in the same row, or the next one that is left."""
        self.lines_changed()
        index = self._buffer.index_of(held[0]) if held else None
        if self._follow or held is None or index is None:
            self._cursor = None
            self._scroll_to_end()
        else:
            self._cursor = index if self._cursor is not None else None
            self.scroll_row(index - held[1])
        self._unseen = self._buffer.count_passing(self._arrived)
        self._tell()

    def _move_cursor(self, lines: int) -> None:
        if not self._buffer:
            return
        last = len(self._buffer) - 1
        # The first move starts at the lowest line in sight, where the eye is.
        start = self._cursor if self._cursor is not None else min(self.scroll_offset.y + self.page_rows, last + 1) - 1
        self._set_follow(follow=False)
        self._put_cursor(max(0, min(start + lines, last)))

    def _put_cursor(self, index: int) -> None:
        self._cursor = index
        if index >= self._seen:
            self._unseen = len(self._buffer) - 1 - index
            self._tell()
        top = self.scroll_offset.y
        if index < top:
            self.scroll_row(index)
        elif index >= top + self.page_rows:
            self.scroll_row(index - self.page_rows + 1)
        self.refresh()

    def _set_follow(self, *, follow: bool) -> None:
        if follow:
            self._cursor = None
            self._scroll_to_end()
        if follow != self._follow or (follow and self._unseen):
            self._follow = follow
            self._unseen = self._arrived = 0
            self._tell()
        self.refresh()

    def _scroll_to_end(self) -> None:
        self.scroll_row(len(self._buffer))

    def _tell(self) -> None:
        self._show_state()
        self.post_message(self.FollowChanged(self, follow=self._follow, unseen=self._unseen))

    def _show_state(self) -> None:
        """Title, filters and whether the tail runs, in the upper line."""
        palette, glyphs, buffer = self.palette, self.glyphs, self._buffer
        left = tail_title(
            self._title,
            filter_words=buffer.filter,
            needle=buffer.needle,
            hits=buffer.hits_among(self._seen),
            palette=palette,
            glyphs=glyphs,
        )
        self.set_title(left, tail_state(follow=self._follow, unseen=self._unseen, palette=palette, glyphs=glyphs))
