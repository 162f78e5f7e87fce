"""docs/schema.md mentions everything that is there, and nothing that is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgq_core.database import connect_sync
from tests.schema.sessions import Session, rows, session

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")


@pytest.fixture
def conn(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        yield opened


def documented_columns() -> dict[str, set[str]]:
    """By table, what stands in the first cell of the rows of its section."""
    found: dict[str, set[str]] = {}
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        if table := re.match(r"`(\w+)`", section):
            cells = re.findall(r"^\| (`[^|]*) \|", section, flags=re.MULTILINE)
            found[table[1]] = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    return found


def test_every_column_of_every_table_is_mentioned_and_no_other(conn: Session) -> None:
    columns = rows(
        conn,
        """SELECT c.relname AS table, array_agg(a.attname::text) AS columns
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relnamespace = 'pgq_core'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
              AND a.attnum > 0 AND NOT a.attisdropped
            GROUP BY c.relname""",
    )

    assert documented_columns() == {row["table"]: set(row["columns"]) for row in columns}


def test_every_view_function_constraint_and_error_is_mentioned(conn: Session) -> None:
    names = rows(
        conn,
        """SELECT relname AS name FROM pg_class WHERE relnamespace = 'pgq_core'::regnamespace AND relkind = 'v'
            UNION ALL
           SELECT proname FROM pg_proc
            WHERE pronamespace = 'pgq_core'::regnamespace AND prorettype <> 'trigger'::regtype
            UNION ALL
           SELECT conname FROM pg_constraint WHERE conrelid = 'pgq_core.jobs'::regclass AND contype IN ('c', 'u')""",
    )

    assert [row["name"] for row in names if f"`{row['name']}" not in PAGE] == []
    texts = rows(conn, "SELECT prosrc AS text FROM pg_proc WHERE pronamespace = 'pgq_core'::regnamespace")
    raised = {code for row in texts for code in re.findall(r"ERRCODE = '(PQ\d+)'", row["text"])}
    assert {code for code in raised if f"`{code}`" not in PAGE} == set()


def test_the_documented_statements_run(dsn: str) -> None:
    with connect_sync(dsn, application_name="documentation") as conn:
        blocks = re.findall(r"^```sql\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
        assert len(blocks) == 3
        for block in blocks:
            conn.execute(block)
