"""The check of a schema that every program makes at its start."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pgq_core.errors import (
    MissingRights,
    SchemaError,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
)
from pgq_core.migrate import check_schema, check_schema_async, migrations, newest_version, run_migrations
from tests.schema.roles import dsn_of, new_role
from tests.schema.sessions import session
from tests.schema.test_migrate import NEXT, step, with_step


@pytest.fixture
def role(dsn: str) -> Iterator[str]:
    with new_role(dsn) as name:
        yield name


def test_a_migrated_schema_is_good(dsn: str) -> None:
    with session(dsn) as conn:
        assert check_schema(conn, "pgq_core") == newest_version()


def test_a_database_without_our_tables_is_told_how_to_get_them(empty_dsn: str) -> None:
    with session(empty_dsn) as conn, pytest.raises(SchemaMissing, match="run: pgq-core migrate --schema 'q x'"):
        check_schema(conn, "q x")


def test_a_schema_of_the_same_name_without_our_tables_counts_as_missing(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute("CREATE SCHEMA pgq_core")

        with pytest.raises(SchemaMissing):
            check_schema(conn, "pgq_core")


def test_an_older_schema_is_refused(empty_dsn: str) -> None:
    run_migrations(empty_dsn, steps=migrations()[:-1])
    with session(empty_dsn) as conn, pytest.raises(SchemaOutdated, match=f"this program needs {newest_version()}"):
        check_schema(conn, "pgq_core")


def test_a_newer_schema_is_refused_only_when_it_left_this_program_behind(dsn: str) -> None:
    friendly = step("SELECT 1", compatible_from=newest_version())
    run_migrations(dsn, steps=with_step(friendly))
    with session(dsn) as conn:
        assert check_schema(conn, "pgq_core") == NEXT

        # A later step that is friendly again does not bring back what the one before it took away.
        breaking = step("SELECT 2", version=NEXT + 1, compatible_from=NEXT + 1)
        friendly_again = step("SELECT 3", version=NEXT + 2, compatible_from=1)
        run_migrations(dsn, steps=with_step(friendly, breaking, friendly_again))

        with pytest.raises(SchemaTooNew, match=f"serves programs from version {NEXT + 1} on"):
            check_schema(conn, "pgq_core")


def test_the_versions_of_another_program_are_not_ours(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute("CREATE TABLE schema_migrations (version varchar PRIMARY KEY)")

        with pytest.raises(SchemaForeign, match="schema_migrations is not ours"):
            check_schema(conn, "public")


def test_a_role_without_rights_is_named(dsn: str, role: str) -> None:
    with (
        session(dsn_of(role, dsn)) as conn,
        pytest.raises(MissingRights, match=f'role "{role}" may not read') as refused,
    ):
        check_schema(conn, "pgq_core")

    assert "permission denied for schema pgq_core" in str(refused.value)


async def test_the_asynchronous_face_says_the_same(dsn: str, empty_dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        assert await check_schema_async(conn, "pgq_core") == newest_version()
        with pytest.raises(SchemaMissing):
            await check_schema_async(conn, "elsewhere")


def test_every_refusal_is_a_schema_error() -> None:
    for refusal in (SchemaMissing, SchemaOutdated, SchemaTooNew, SchemaForeign, MissingRights):
        assert issubclass(refusal, SchemaError)
