"""A table of rows with ids: the cursor and the marks belong to ids, whatever comes, goes or moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual._two_way_dict import TwoWayDict
from textual.binding import Binding, BindingType
from textual.coordinate import Coordinate
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip
from textual.widgets import DataTable
from textual.widgets.data_table import Column, ColumnKey, Row, RowKey

from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.rows import GAP, TableColumn, TableRow, column_widths, same_cell, visible_columns
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.widgets.cell_paint import cell_segments, place_meta
from pgq_tui.widgets.panel import Panel

_MARK = TableColumn("_mark", "", 1)
_HEADER_ROW = -1


class RowTable(DataTable[Text], Panel):
    """A `DataTable` fed with whole pictures: `show_rows` finds out what changed and paints only that.

    Rows come sorted; the table never sorts. It draws its cells itself: a cell is always text of exactly the width
    of its column, which is many times faster than laying out renderables.
    """

    DEFAULT_CSS = """
    RowTable {
        height: 1fr;
        border: round $border-blurred;
        background: $surface;
        overflow-x: auto;
        overflow-y: auto;
        scrollbar-size: 1 1;
        scrollbar-gutter: stable;
        &:focus { border: round $border; background-tint: $foreground 0%; }
        &.-ascii { border: ascii $border-blurred; }
        &.-ascii:focus { border: ascii $border; }
        & > .datatable--header { background: $surface; color: $foreground-muted; text-style: none; }
        &:focus > .datatable--header { background-tint: $foreground 0%; }
        &:ansi > .datatable--header { background: ansi_default; text-style: bold; }
        & > .datatable--header-hover { background: $panel; }
        &:dark > .datatable--even-row { background: $surface; }
        & > .datatable--even-row { background: $surface; }
        & > .datatable--hover { background: $block-hover-background; }
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "select_cursor", "Open", id="table.open", show=False),
        Binding("j,down", "cursor_down", "Down", id="table.down", show=False),
        Binding("k,up", "cursor_up", "Up", id="table.up", show=False),
        Binding("pagedown", "page_down", "Page down", id="table.page_down", show=False),
        Binding("pageup", "page_up", "Page up", id="table.page_up", show=False),
        Binding("left", "cursor_left", "Scroll left", id="table.left", show=False),
        Binding("right", "cursor_right", "Scroll right", id="table.right", show=False),
        Binding("g,home", "first_row", "First row", id="table.first", show=False),
        Binding("G,end", "last_row", "Last row", id="table.last", show=False),
        Binding("ctrl+d", "half_page(1)", "Half a page down", id="table.half_down", show=False),
        Binding("ctrl+u", "half_page(-1)", "Half a page up", id="table.half_up", show=False),
        Binding("space", "toggle_mark", "Mark", id="table.mark", show=False),
    ]

    class CursorMoved(Message):
        """Another id is under the cursor, because the cursor moved or because its row went."""

        def __init__(self, table: RowTable, key: str | None) -> None:
            super().__init__()
            self.table = table
            self.key = key

        @property
        def control(self) -> RowTable:
            """The table it happened in."""
            return self.table

    class MarksChanged(Message):
        """Other rows are marked."""

        def __init__(self, table: RowTable, marks: frozenset[str]) -> None:
            super().__init__()
            self.table = table
            self.marks = marks

        @property
        def control(self) -> RowTable:
            """The table it happened in."""
            return self.table

    def __init__(
        self,
        columns: Sequence[TableColumn],
        *,
        empty: str = "nothing here",
        can_mark: bool = True,
        id: str | None = None,  # noqa: A002 - Textual's name
        classes: str | None = None,
    ) -> None:
        super().__init__(
            cursor_type="row",
            cell_padding=0,
            cursor_foreground_priority="renderable",
            cursor_background_priority="css",
            id=id,
            classes=classes,
        )
        self._wanted_columns = tuple(columns)
        self._laid_out: dict[str, TableColumn] = {}
        self._can_mark = can_mark
        self._empty = empty
        self._table_rows: dict[str, TableRow] = {}
        self._marks: set[str] = set()
        self._sorted_by: tuple[str, bool] | None = None
        self._told_key: str | None = None
        self._is_placing = False
        self._is_aimed = False

    @property
    def cursor_key(self) -> str | None:
        """The id under the cursor."""
        if not self.is_valid_row_index(self.cursor_row):
            return None
        return self._row_locations.get_key(self.cursor_row).value  # type: ignore[union-attr]  # the index is valid

    @property
    def row_keys(self) -> list[str]:
        """The ids shown, from top to bottom."""
        return list(self._table_rows)

    @property
    def marks(self) -> frozenset[str]:
        """The ids marked, also those that are not shown at the moment."""
        return frozenset(self._marks)

    @property
    def chosen_keys(self) -> list[str]:
        """What an action is about: the marked ids, shown ones first; without marks the one under the cursor."""
        if self._marks:
            hidden = sorted(self._marks - self._table_rows.keys())
            return [key for key in self._table_rows if key in self._marks] + hidden
        return [self.cursor_key] if self.cursor_key is not None else []

    def on_mount(self) -> None:
        """Take the frame that suits the terminal."""
        self.set_class(self.glyphs.is_ascii, "-ascii")

    def show_rows(self, rows: Iterable[TableRow]) -> None:
        """Show exactly these rows in this order. The cursor stays on its id and, once it was moved, on its line."""
        wanted = {row.key: row for row in rows}
        if not self.columns:
            self._lay_out_columns()
        if not self._differs(wanted):
            return
        before = self._table_rows
        held, line, top = self.cursor_key, self.cursor_row, self.scroll_offset.y
        self._table_rows = wanted
        self._fill()
        if list(wanted) == list(before):
            self._repaint_changed(before)
            return
        self._hold(held, line, top)
        self._tell_key()
        self.refresh()

    def set_empty(self, words: str) -> None:
        """What is said instead of rows."""
        self._empty = words
        self.refresh()

    def show_sort(self, column: str, *, is_descending: bool) -> None:
        """Say in the header by which column the rows came sorted; by none of them where it is empty."""
        if self._sorted_by != (column, is_descending):
            self._sorted_by = (column, is_descending)
            self._lay_out_columns()

    def set_columns(self, columns: Sequence[TableColumn]) -> None:
        """Show other columns; `show_rows` with matching cells has to follow."""
        self._wanted_columns = tuple(columns)
        self._table_rows = {}
        self._lay_out_columns()

    def go_to(self, key: str) -> bool:
        """Put the cursor on an id; false when it is not shown."""
        if key not in self._row_locations:
            return False
        self.move_cursor(row=self._row_locations.get(RowKey(key)), animate=False)
        return True

    def mark(self, keys: Iterable[str]) -> None:
        """Mark these as well."""
        self._change_marks(self._marks | set(keys))

    def keep_marks(self, keys: Iterable[str]) -> None:
        """Leave only these of the marks."""
        self._change_marks(self._marks & set(keys))

    def clear_marks(self) -> None:
        """Mark nothing."""
        self._change_marks(set())

    def mark_shown(self) -> None:
        """Mark all rows shown, or, when all are, none of them."""
        shown = set(self._table_rows)
        self._change_marks(self._marks - shown if shown <= self._marks else self._marks | shown)

    def action_toggle_mark(self) -> None:
        """Mark the row under the cursor or take its mark, and go on to the next."""
        key = self.cursor_key
        if key is not None and self._can_mark:
            self._change_marks(self._marks ^ {key})
            self.action_cursor_down()

    def action_first_row(self) -> None:
        """To the first row; new rows above it will push it down again."""
        self.action_scroll_top()
        self._is_aimed = False

    def action_last_row(self) -> None:
        """To the last row."""
        self.action_scroll_bottom()

    def action_half_page(self, direction: int) -> None:
        """Half a window up or down."""
        rows = max((self.scrollable_content_region.height - self.header_height) // 2, 1)
        self.move_cursor(row=self.cursor_row + direction * rows, animate=False)

    def on_resize(self, _: Resize) -> None:
        """Share the width anew."""
        self._lay_out_columns()

    def watch_cursor_coordinate(self, old_coordinate: Coordinate, new_coordinate: Coordinate) -> None:
        """A cursor moved by the operator is an aim: from now on its line stands still."""
        super().watch_cursor_coordinate(old_coordinate, new_coordinate)
        if not self._is_placing and old_coordinate.row != new_coordinate.row:
            self._is_aimed = True
            self._tell_key()

    def render_line(self, y: int) -> Strip:
        """One line; without rows the one below the header says why."""
        if self.row_count or y != (self.header_height if self.show_header else 0):
            return super().render_line(y)
        width = self.size.width
        words = one_line(self._empty, width - 1, glyphs=self.glyphs)
        style = self.rich_style + self.palette.style(Token.DIM)
        return Strip([Segment(f" {words}".ljust(width), style)]).crop_extend(0, width, self.rich_style)

    def _differs(self, wanted: dict[str, TableRow]) -> bool:
        if list(wanted) != list(self._table_rows):
            return True
        return any(not _same_row(row, wanted[key]) for key, row in self._table_rows.items())

    def _repaint_changed(self, before: dict[str, TableRow]) -> None:
        """Only the rows in sight that look different."""
        top = self.scroll_offset.y
        in_sight = islice(enumerate(self._table_rows.items()), top, top + self.size.height)
        for index, (key, row) in in_sight:
            if not _same_row(before[key], row):
                self.refresh_row(index)

    def _lay_out_columns(self) -> None:
        """Columns for the width there is: those that fit, the flexible ones filling the rest."""
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        columns = [*([_MARK] if self._can_mark else []), *self._wanted_columns]
        shown = visible_columns(columns, width)
        widths = column_widths(shown, width)
        self._laid_out = {column.key: column for column in shown}
        keys = [ColumnKey(column.key) for column in shown]
        self.columns = {
            key: Column(key, self._label(column), room + GAP)
            for key, column, room in zip(keys, shown, widths, strict=True)
        }
        self._column_locations = TwoWayDict({key: index for index, key in enumerate(keys)})
        self._clear_caches()
        self._fill()
        self.refresh()

    def _label(self, column: TableColumn) -> Text:
        label = column.label
        if self._sorted_by and self._sorted_by[0] == column.key:
            label += self.glyphs.down if self._sorted_by[1] else self.glyphs.up
        return Text(label)

    def _fill(self) -> None:
        """Give the wanted rows to the data table in one step: it would paint after each single change."""
        places = {column.key: index for index, column in enumerate(self._wanted_columns)}
        keys = [RowKey(key) for key in self._table_rows]
        self.rows = {key: Row(key, 1) for key in keys}
        self._data = {
            key: {
                column: self._mark_cell(row.key) if column.value == _MARK.key else row.cells[places[str(column.value)]]
                for column in self.columns
            }
            for key, row in zip(keys, self._table_rows.values(), strict=True)
        }
        self._row_locations = TwoWayDict({key: index for index, key in enumerate(keys)})
        self._update_count += 1
        self._update_dimensions(())

    def _mark_cell(self, key: str) -> Text:
        if key not in self._marks:
            return Text()
        return Text(self.glyphs.icons["marked"], self.palette.style(Token.ACCENT))

    def _hold(self, held: str | None, line: int, top: int) -> None:
        """The cursor back on its id, or on the line where it was when the id is gone."""
        index = self._row_locations.get(RowKey(held)) if held in self._row_locations else line
        index = max(0, min(index if index is not None else 0, self.row_count - 1))
        self._is_placing = True
        with self.prevent(DataTable.RowHighlighted):
            self.cursor_coordinate = Coordinate(index, 0)
        self._is_placing = False
        stays_at_top = top == 0 and not self._is_aimed
        row = top if stays_at_top else index - (line - top)
        self.scroll_to(y=max(0, min(row, self.max_scroll_y)), animate=False, force=True)
        self._scroll_cursor_into_view()

    def _tell_key(self) -> None:
        if self.cursor_key != self._told_key:
            self._told_key = self.cursor_key
            self.post_message(self.CursorMoved(self, self._told_key))

    def _change_marks(self, marks: set[str]) -> None:
        if marks == self._marks:
            return
        self._marks = marks
        self._fill()
        self.refresh()
        self.post_message(self.MarksChanged(self, self.marks))

    def _render_cell(  # noqa: PLR0917 - Textual's signature
        self,
        row_index: int,
        column_index: int,
        base_style: Style,
        width: int,
        cursor: bool = False,
        hover: bool = False,
    ) -> list[list[Segment]]:
        """One cell as one line of `width` cells, the gap to the next column at its end."""
        column_key = self._column_locations.get_key(column_index)
        component, post = self._get_styles_to_render_cell(
            row_index == _HEADER_ROW,
            False,
            False,
            hover,
            cursor,
            self.show_cursor,
            self._show_hover_cursor,
            False,
            True,
        )
        style = base_style + component + place_meta(row_index, column_index)
        if row_index == _HEADER_ROW:
            text = self.columns[column_key].label  # type: ignore[index]  # the index comes from the table itself
        else:
            text = self._data[self._row_locations.get_key(row_index)][column_key]  # type: ignore[index]  # as above
        is_right = self._laid_out[str(column_key.value)].is_right  # type: ignore[union-attr]  # as above
        console, glyphs = self.app.console, self.glyphs
        # The sign of the order may stand in the gap: a label is not cut for it.
        gap = 0 if row_index == _HEADER_ROW and text.cell_len > width - GAP else GAP
        segments = cell_segments(
            text, width - gap, style, post, is_right=is_right, console=console, glyphs=glyphs, gap=gap
        )
        return [segments]


def _same_row(one: TableRow, other: TableRow) -> bool:
    return one is other or (len(one.cells) == len(other.cells) and all(map(same_cell, one.cells, other.cells)))
