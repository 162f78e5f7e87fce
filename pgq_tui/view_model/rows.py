"""Tables as data: columns with their widths, rows with their keys, and the arithmetic of fitting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

GAP = 1
"""Blank cells after each column."""
_NARROWEST = 4


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: `width` is exact, or the least when `flex` gives it a part of what is left over.

    `drop` above zero lets the column go on narrow screens, the highest number first.
    """

    key: str
    label: str
    width: int
    flex: int = 0
    is_right: bool = False
    drop: int = 0


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: the id it stands for and a cell for every column, dropped ones included."""

    key: str
    cells: tuple[Text, ...]


def visible_columns(columns: Sequence[TableColumn], width: int) -> list[TableColumn]:
    """The columns that fit `width` cells, in their order, after letting go what may go.

    >>> columns = [TableColumn("id", "ID", 8), TableColumn("p95", "p95", 6, drop=1), TableColumn("x", "X", 6, drop=2)]
    >>> [[c.key for c in visible_columns(columns, w)] for w in (23, 16, 12, 3)]
    [['id', 'p95', 'x'], ['id', 'p95'], ['id'], ['id']]
    """
    kept = list(columns)
    for column in sorted((c for c in columns if c.drop), key=lambda c: -c.drop):
        if _needed(kept) <= width:
            break
        kept.remove(column)
    return kept


def column_widths(columns: Sequence[TableColumn], width: int) -> list[int]:
    """The width of each column when the flexible ones share what is left, to the last cell.

    >>> flexible = TableColumn("error", "ERROR", 5, flex=2), TableColumn("x", "X", 4, flex=1)
    >>> columns = [TableColumn("id", "ID", 8), *flexible]
    >>> column_widths(columns, 30), column_widths(columns, 19), column_widths(columns, 10)
    ([8, 11, 8], [8, 4, 4], [8, 4, 4])
    """
    left_over = width - _needed(columns)
    if left_over < 0:
        return _narrowed(columns, -left_over)
    shares = sum(column.flex for column in columns)
    widths = [column.width for column in columns]
    for index, column in enumerate(columns):
        if column.flex:
            part = left_over * column.flex // shares
            widths[index] += part
            left_over -= part
            shares -= column.flex
    return widths


def _narrowed(columns: Sequence[TableColumn], missing: int) -> list[int]:
    """Where even the least widths have no room the flexible columns give way, the widest first."""
    widths = [column.width for column in columns]
    flexible = [index for index, column in enumerate(columns) if column.flex]
    while missing > 0 and any(widths[index] > _NARROWEST for index in flexible):
        widths[max(flexible, key=widths.__getitem__)] -= 1
        missing -= 1
    return widths


def same_cell(one: Text, other: Text) -> bool:
    """Whether two cells look the same; `Text` itself compares without the style of the whole.

    >>> same_cell(Text("x", "red"), Text("x", "red")), same_cell(Text("x", "red"), Text("x"))
    (True, False)
    """
    return one is other or (one == other and one.style == other.style)


def _needed(columns: Sequence[TableColumn]) -> int:
    return sum(column.width + GAP for column in columns)
