"""What migrate refuses, and that a refusal changes nothing and is one clear sentence."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from pgq_core.errors import (
    AdoptionRefused,
    MigrationBlocked,
    MissingRights,
    SchemaError,
    SchemaForeign,
    ServerUnfit,
)
from pgq_core.migrate import has_first_form, migrate, migrator, run_migrations
from pgq_core.migrate.migrator import Migrator
from pgq_core.sql import schema_statement
from tests.schema.first_form import FIRST_FORM
from tests.schema.roles import dsn_of, new_role
from tests.schema.sessions import row, rows, session, value
from tests.support.databases import database_dsn, database_name

CATALOG = """
SELECT n.nspname, c.relname, c.relkind FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') ORDER BY 1, 2
"""


def assert_one_sentence(error: BaseException) -> None:
    assert "\n" not in str(error)
    assert 20 < len(str(error)) < 400


def test_a_foreign_table_called_jobs_is_left_alone(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute("CREATE TABLE public.jobs (id uuid PRIMARY KEY, queue text, title text)")
        before = rows(conn, CATALOG)

        with pytest.raises(SchemaForeign) as refused:
            migrate(empty_dsn, "public")

        assert_one_sentence(refused.value)
        assert 'table "public".jobs is not ours' in str(refused.value)
        assert "id bigint" in str(refused.value)
        assert "title text" in str(refused.value)
        assert rows(conn, CATALOG) == before


def test_a_first_form_table_that_somebody_extended_is_named_with_the_difference(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute("ALTER TABLE job_runs ADD COLUMN host text")

    with pytest.raises(SchemaForeign, match=r"job_runs is not ours \(it has host text\)"):
        migrate(empty_dsn, "public")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("CREATE TABLE public.schema_migrations (version varchar PRIMARY KEY)", "schema_migrations"),
        ("CREATE TABLE public.workers (id int)", "workers"),
        ("CREATE VIEW public.dead_jobs AS SELECT 1", "dead_jobs"),
        ("CREATE VIEW public.jobs AS SELECT 1 AS id", "jobs"),
    ],
)
def test_a_relation_of_another_program_with_one_of_our_names_is_left_alone(
    empty_dsn: str, statement: str, name: str
) -> None:
    with session(empty_dsn) as conn:
        conn.execute(statement)
        before = rows(conn, CATALOG)

        with pytest.raises(SchemaForeign) as refused:
            migrate(empty_dsn, "public")

        assert refused.value.table == name
        assert_one_sentence(refused.value)
        assert rows(conn, CATALOG) == before


def test_a_function_of_another_program_with_one_of_our_names_is_left_alone(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute("CREATE FUNCTION public.cancel(bigint) RETURNS int LANGUAGE sql AS 'SELECT 1'")

    with pytest.raises(SchemaError, match=r"something of a name that pgq needs .*cancel") as refused:
        migrate(empty_dsn, "public")

    assert_one_sentence(refused.value)


def test_another_schema_leaves_a_foreign_public_jobs_untouched(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute("CREATE TABLE public.jobs (id uuid PRIMARY KEY, queue text)")

        report = run_migrations(empty_dsn, "q x", set_search_path=True)

        assert not report.is_search_path_set
        assert any("a bare jobs means public.jobs" in notice for notice in report.notices())
        conn.execute("""INSERT INTO "q x".jobs (payload) VALUES ('{"type": "a"}')""")
        assert value(conn, "SELECT count(*) FROM public.jobs") == 0
    with session(empty_dsn) as conn:
        assert value(conn, "SELECT to_regclass('jobs')::text") == "jobs"
        assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_first_form_tables_in_public_are_named_with_the_flag_that_adopts_them(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        assert has_first_form(conn)

        report = run_migrations(empty_dsn)

        assert report.first_form_in == "public"
        assert any("pgq-core migrate --schema public" in notice for notice in report.notices())
        assert has_first_form(conn)
        run_migrations(empty_dsn, "public")
        assert not has_first_form(conn)
        assert run_migrations(empty_dsn).first_form_in is None


def test_fresh_locks_of_a_first_form_worker_refuse_and_change_nothing(empty_dsn: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute(
            """INSERT INTO jobs (payload, locked_by, locked_at)
               VALUES ('{"type": "a", "data": {}}', 'host-7', now() - interval '10 s'),
                      ('{"type": "a", "data": {}}', 'host-8', now() - interval '31 s')"""
        )
        before = rows(conn, CATALOG), rows(conn, "SELECT * FROM jobs ORDER BY id")

        with pytest.raises(AdoptionRefused) as refused:
            migrate(empty_dsn, "public")

        assert_one_sentence(refused.value)
        assert "by host-7: stop these workers" in str(refused.value)
        assert (rows(conn, CATALOG), rows(conn, "SELECT * FROM jobs ORDER BY id")) == before


def test_a_claim_between_the_first_steps_is_noticed(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Migrator._apply

    def claim_after_first_step(self: Migrator, step: object) -> bool:
        done = apply(self, step)  # type: ignore[arg-type]  # passed through
        with session(empty_dsn) as conn:
            conn.execute("UPDATE jobs SET locked_by = 'host-7', locked_at = now()")
        return done

    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute("""INSERT INTO jobs (payload) VALUES ('{"type": "a"}')""")
        monkeypatch.setattr(Migrator, "_apply", claim_after_first_step)

        with pytest.raises(AdoptionRefused, match="host-7"):
            migrate(empty_dsn, "public")

        assert row(conn, "SELECT locked_by FROM jobs") == {"locked_by": "host-7"}


def test_tables_in_use_are_named_with_their_users(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgq_core.migrate.steps.LOCK_WAIT", "200ms")
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
    with session(empty_dsn, autocommit=False) as user:
        user.execute("SET application_name = 'nightly report'")
        user.execute("SELECT count(*) FROM jobs")

        with pytest.raises(MigrationBlocked) as refused:
            migrate(empty_dsn, "public")

        assert_one_sentence(refused.value)
        assert f"in use by nightly report (pid {user.info.backend_pid}, idle in transaction)" in str(refused.value)
    assert migrate(empty_dsn, "public")


@pytest.fixture
def role(empty_dsn: str) -> Iterator[str]:
    with new_role(empty_dsn) as name:
        yield name


def test_a_role_that_may_not_create_a_schema_is_told_which_right_it_lacks(empty_dsn: str, role: str) -> None:
    with pytest.raises(MissingRights) as refused:
        migrate(dsn_of(role, empty_dsn))

    assert_one_sentence(refused.value)
    assert f'role "{role}" may not create schema "pgq_core"' in str(refused.value)
    assert f'GRANT CREATE ON DATABASE "{database_name(empty_dsn)}" TO "{role}"' in str(refused.value)


def test_the_named_grant_is_enough(empty_dsn: str, role: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(f'GRANT CREATE ON DATABASE "{database_name(empty_dsn)}" TO "{role}"')

    assert migrate(dsn_of(role, empty_dsn))


def test_a_schema_made_for_the_role_needs_no_right_on_the_database(empty_dsn: str, role: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute("CREATE SCHEMA pgq_core")
        conn.execute(f'GRANT USAGE ON SCHEMA pgq_core TO "{role}"')

        with pytest.raises(MissingRights, match='may not create tables in schema "pgq_core": it lacks CREATE'):
            migrate(dsn_of(role, empty_dsn))

        conn.execute(f'GRANT CREATE ON SCHEMA pgq_core TO "{role}"')
    assert migrate(dsn_of(role, empty_dsn))


def test_tables_of_somebody_else_are_not_adopted(empty_dsn: str, role: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute(f'GRANT ALL ON SCHEMA public TO "{role}"')
        owner = conn.info.user

    with pytest.raises(MissingRights) as refused:
        migrate(dsn_of(role, empty_dsn), "public")

    assert_one_sentence(refused.value)
    assert f'role "{role}" may not change table "public".dead_letter_jobs: "{owner}" owns it' in str(refused.value)


def test_the_search_path_of_a_database_is_its_owners(empty_dsn: str, role: str) -> None:
    with session(empty_dsn) as conn:
        conn.execute(f'GRANT CREATE ON DATABASE "{database_name(empty_dsn)}" TO "{role}"')

    with pytest.raises(MissingRights, match=r'the owner can: ALTER DATABASE .* SET search_path = "pgq_core", '):
        run_migrations(dsn_of(role, empty_dsn), set_search_path=True)


@pytest.fixture
def latin_dsn(server_dsn: str) -> Iterator[str]:
    name = "pgq_test_latin1"
    with psycopg.connect(server_dsn, autocommit=True) as conn:
        conn.execute(sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name)))
        conn.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'").format(sql.Identifier(name))
        )
    try:
        yield database_dsn(server_dsn, name)
    finally:
        with psycopg.connect(server_dsn, autocommit=True) as conn:
            conn.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def test_a_database_of_another_encoding_is_refused(latin_dsn: str) -> None:
    with pytest.raises(ServerUnfit) as refused:
        migrate(latin_dsn)

    assert_one_sentence(refused.value)
    assert "is encoded in LATIN1" in str(refused.value)
    with session(latin_dsn) as conn:
        assert rows(conn, CATALOG) == []


def test_a_server_that_is_too_old_is_refused(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this server were older than what is asked for."""
    guard = schema_statement("refuse_unfit_server", "pgq_core").replace("140000", "990000")
    monkeypatch.setattr(migrator, "schema_statement", lambda *_: guard)

    with pytest.raises(ServerUnfit, match=r"this is PostgreSQL .*, and pgq needs version 14 or newer") as refused:
        migrate(empty_dsn)

    assert_one_sentence(refused.value)
    with session(empty_dsn) as conn:
        assert rows(conn, CATALOG) == []
