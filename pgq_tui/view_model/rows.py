"""Tables as data: columns with their widths, rows with their keys, and the arithmetic of fitting them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

PADDING = 1
"""Blank cells on each side of a column."""


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
    >>> [[c.key for c in visible_columns(columns, w)] for w in (26, 20, 12, 3)]
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
    >>> column_widths(columns, 33), column_widths(columns, 10)
    ([8, 11, 8], [8, 5, 4])
    """
    left_over = max(0, width - _needed(columns))
    shares = sum(column.flex for column in columns)
    widths = [column.width for column in columns]
    for index, column in enumerate(columns):
        if column.flex:
            part = left_over * column.flex // shares
            widths[index] += part
            left_over -= part
            shares -= column.flex
    return widths


def _needed(columns: Sequence[TableColumn]) -> int:
    return sum(column.width + 2 * PADDING for column in columns)
