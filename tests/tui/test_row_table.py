"""Cursor and marks of a table belong to ids, whatever rows come, go or move."""

from __future__ import annotations

import pytest
from rich.text import Text
from textual.widgets import DataTable

from pgq_tui.view_model import TableColumn, TableRow
from pgq_tui.widgets import RowTable
from tests.tui.stage import SIZES, Stage, screen_lines, screen_text, settle

COLUMNS = (
    TableColumn("id", "ID", 6, is_right=True),
    TableColumn("type", "TYPE", 12, flex=1),
    TableColumn("wait", "WAIT", 6, is_right=True),
    TableColumn("error", "LAST ERROR", 40, flex=2, drop=1),
)


class Watcher(Stage):
    def on_row_table_cursor_moved(self, message: RowTable.CursorMoved) -> None:
        self.messages.append(message.key)

    def on_row_table_marks_changed(self, message: RowTable.MarksChanged) -> None:
        self.messages.append(message.marks)


def row(number: int, wait: str = "1s") -> TableRow:
    return TableRow(str(number), (Text(str(number)), Text(f"job {number}"), Text(wait), Text("none")))


def rows(*numbers: int) -> list[TableRow]:
    return [row(number) for number in numbers]


def screen_row(table: RowTable) -> int:
    return table.cursor_row - table.scroll_offset.y


@pytest.mark.parametrize("size", SIZES)
async def test_cursor_stays_on_its_id_and_its_line_when_rows_come_above(size: tuple[int, int]) -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=size) as pilot:
        table.show_rows(rows(*range(100, 300)))
        table.focus()
        await pilot.press("ctrl+d", "ctrl+d", "ctrl+d", "j")
        await settle(pilot)
        before = table.cursor_key, screen_row(table)

        table.show_rows(rows(*range(90, 300)))
        await settle(pilot)

        assert (table.cursor_key, screen_row(table)) == before
        shown = next(line for line in screen_lines(pilot.app) if f"job {before[0]}" in line)
        assert screen_lines(pilot.app).index(shown) == before[1] + 2


async def test_new_rows_show_above_a_cursor_nobody_moved() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(*range(5, 100)))
        await settle(pilot)

        table.show_rows(rows(*range(100)))
        await settle(pilot)

        assert table.scroll_offset.y == 0
        assert table.cursor_key == "5"
        assert "job 0" in screen_text(pilot.app)


async def test_cursor_stays_on_its_line_when_its_row_is_gone() -> None:
    table = RowTable(COLUMNS)
    app = Watcher(table)
    async with app.run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(*range(20)))
        table.focus()
        await pilot.press("j", "j", "j")
        await settle(pilot)

        table.show_rows(rows(0, 1, 2, *range(4, 20)))
        await settle(pilot)

        assert table.cursor_row == 3
        assert table.cursor_key == "4"
        assert app.messages[-1] == "4"


async def test_cursor_follows_its_row_when_the_order_changes() -> None:
    table = RowTable(COLUMNS)
    app = Watcher(table)
    async with app.run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1, 2, 3, 4))
        table.focus()
        await pilot.press("j")
        await settle(pilot)
        told = len(app.messages)

        table.show_rows(rows(4, 3, 2, 1))
        await settle(pilot)

        assert table.cursor_key == "2"
        assert table.row_keys == ["4", "3", "2", "1"]
        assert len(app.messages) == told


async def test_cursor_survives_losing_all_rows() -> None:
    table = RowTable(COLUMNS, empty="no jobs [/x] today")
    app = Watcher(table)
    async with app.run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1, 2))
        await settle(pilot)
        table.show_rows([])
        await settle(pilot)

        assert table.cursor_key is None
        assert table.chosen_keys == []
        assert app.messages == ["1", None]
        assert "no jobs [/x] today" in screen_text(pilot.app)

        table.show_rows(rows(7))
        await settle(pilot)
        assert table.cursor_key == "7"


async def test_changed_cells_are_shown_and_the_same_rows_are_not_painted_again() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1, 2, 3))
        await settle(pilot)

        table.show_rows([row(1), row(2, wait="9m02s"), row(3)])
        await settle(pilot)
        assert "9m02s" in screen_text(pilot.app)

        painted = table._update_count
        table.show_rows([row(1), row(2, wait="9m02s"), row(3)])
        assert table._update_count == painted


async def test_a_cell_that_changes_only_its_colour_is_shown() -> None:
    table = RowTable([TableColumn("a", "A", 5)])
    async with Stage(table).run_test(size=(80, 24)) as pilot:
        table.show_rows([TableRow("1", (Text("x"),))])
        await settle(pilot)
        painted = table._update_count

        table.show_rows([TableRow("1", (Text("x", "red"),))])

        assert table._update_count > painted


async def test_marks_are_kept_by_id_and_shown() -> None:
    table = RowTable(COLUMNS)
    app = Watcher(table)
    async with app.run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1, 2, 3))
        table.focus()
        await pilot.press("space", "space")
        await settle(pilot)

        assert table.marks == {"1", "2"}
        assert [told for told in app.messages if isinstance(told, frozenset)] == [{"1"}, {"1", "2"}]

        table.show_rows(rows(3, 2, 9))
        await settle(pilot)
        assert table.chosen_keys == ["2", "1"]
        lines = screen_lines(pilot.app)
        assert [("●" in line) for line in lines if "job " in line] == [False, True, False]

        table.clear_marks()
        assert table.chosen_keys == [table.cursor_key]


async def test_a_second_space_takes_the_mark_away() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1, 2))
        table.focus()
        await pilot.press("space", "k", "space")

        assert table.marks == frozenset()


async def test_all_shown_rows_are_marked_and_unmarked_at_once() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(80, 24)):
        table.show_rows(rows(1, 2, 3))

        table.mark_shown()
        assert table.marks == {"1", "2", "3"}
        table.mark_shown()
        assert table.marks == frozenset()


async def test_vim_keys_move_the_cursor() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(*range(100)))
        table.focus()
        steps = [("j", 1), ("k", 0), ("G", 99), ("g", 0), ("ctrl+d", 10), ("ctrl+u", 0), ("down", 1), ("up", 0)]
        for key, index in steps:
            await pilot.press(key)
            assert table.cursor_row == index, key


@pytest.mark.parametrize("size", SIZES)
async def test_flexible_columns_fill_the_width_and_numbers_stand_right(size: tuple[int, int]) -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=size) as pilot:
        table.show_rows(rows(1, 22, 333))
        await settle(pilot)

        assert sum(column.width for column in table.columns.values()) == table.scrollable_content_region.width
        ends = {
            line.index(f"{number} job") + len(str(number))
            for number, line in zip((1, 22, 333), data_lines(pilot.app), strict=True)
        }
        assert len(ends) == 1


def data_lines(app: object) -> list[str]:
    return [line for line in screen_lines(app) if "job " in line]  # type: ignore[arg-type]


async def test_columns_that_have_no_room_go_and_come_back() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(120, 24)) as pilot:
        table.show_rows(rows(1))
        await settle(pilot)
        assert "LAST ERROR" in screen_text(pilot.app)

        await pilot.resize_terminal(50, 24)
        await settle(pilot, until=lambda: "LAST ERROR" not in screen_text(pilot.app))
        assert "job 1" in screen_text(pilot.app)
        assert table.cursor_key == "1"

        await pilot.resize_terminal(120, 24)
        await settle(pilot, until=lambda: "LAST ERROR" in screen_text(pilot.app))


async def test_a_click_on_another_row_moves_the_cursor_there() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1, 2, 3))
        await settle(pilot)

        await pilot.click(RowTable, offset=(10, 4))
        await settle(pilot)

        assert table.cursor_key == "3"


async def test_enter_opens_the_row_under_the_cursor() -> None:
    class Opener(Stage):
        def on_data_table_row_selected(self, message: DataTable.RowSelected) -> None:
            self.messages.append(message.row_key.value)

    table = RowTable(COLUMNS)
    app = Opener(table)
    async with app.run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1, 2, 3))
        table.focus()
        await pilot.press("j", "enter")

        assert app.messages == ["2"]


async def test_rows_given_before_the_table_has_a_size_are_shown_later() -> None:
    table = RowTable(COLUMNS)

    class Early(Stage):
        def on_mount(self) -> None:
            super().on_mount()
            table.show_rows(rows(1, 2, 3))

    async with Early(table).run_test(size=(80, 24)) as pilot:
        await settle(pilot)

        assert "job 3" in screen_text(pilot.app)
        assert table.cursor_key == "1"


async def test_the_sorted_column_says_so() -> None:
    table = RowTable(COLUMNS)
    async with Stage(table).run_test(size=(80, 24)) as pilot:
        table.show_rows(rows(1))
        table.show_sort("wait", is_descending=True)
        await settle(pilot)

        assert "WAIT▼" in screen_text(pilot.app)
