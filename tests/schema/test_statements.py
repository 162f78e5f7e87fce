"""Every statement in `sql/queries/` can be prepared, whatever the schema is called, and belongs to one method."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgq_core.migrate import migrate
from pgq_core.queries import Queries
from pgq_core.sql import query_names, query_text
from tests.schema.sessions import Session, session
from tests.schema.statements import PREPARED, prepare
from tests.support.databases import new_database

SCHEMA = "q x"


@pytest.fixture(scope="module")
def conn(server_dsn: str) -> Iterator[Session]:
    with new_database(server_dsn) as dsn:
        migrate(dsn, SCHEMA)
        with session(dsn, options="-c search_path=") as opened:
            yield opened


@pytest.mark.parametrize("name", query_names())
def test_it_can_be_prepared(conn: Session, name: str) -> None:
    prepare(conn, name, SCHEMA)


def test_every_file_is_used_by_one_group_of_statements() -> None:
    used = sorted(name for names in PREPARED.values() for name in set(names))

    assert used == query_names()


def test_a_file_opens_with_a_line_that_says_what_it_is_for() -> None:
    assert [name for name in query_names() if not query_text(name).startswith("-- ")] == []


def test_every_file_has_a_method_of_its_name() -> None:
    assert [name for name in query_names() if not hasattr(Queries, name)] == []
