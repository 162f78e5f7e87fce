"""Columns of ids are as wide as the ids: nobody can use a number with its end cut off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pgq_tui.view_model.rows import TableColumn


def fit_ids(columns: Sequence[TableColumn], **ids: Iterable[int]) -> tuple[TableColumn, ...]:
    """The columns with those named widened to their longest id; they never get narrower than they were made.

    >>> columns = (TableColumn("id", "ID", 6), TableColumn("type", "TYPE", 9))
    >>> [column.width for column in fit_ids(columns, id=(7, 2**63 - 1))], fit_ids(columns, id=(7,)) == columns
    ([19, 9], True)
    """
    longest = {name: max((len(str(one)) for one in values), default=0) for name, values in ids.items()}
    return tuple(replace(column, width=max(column.width, longest.get(column.key, 0))) for column in columns)
