"""Migrations: forward only, one transaction a step, one migrator at a time."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgq_core.errors import MigrationBlocked, SchemaChanged, SchemaTooNew
from pgq_core.migrate import Migration, migrate, migrations, newest_version, run_migrations
from pgq_core.migrate.steps import concurrent_statement
from pgq_core.sql import migration_files
from tests.schema.sessions import InBackground, rows, session, value
from tests.support.waiting import eventually

VERSIONS = [step.version for step in migrations()]
NEXT = newest_version() + 1


def step(text: str, *, version: int = NEXT, compatible_from: int = NEXT) -> Migration:
    return Migration(version, f"{version:04d}_test", text, compatible_from)


def with_step(*added: Migration) -> list[Migration]:
    return [*migrations(), *added]


def applied(dsn: str, schema: str = "pgq_core") -> list[int]:
    with session(dsn) as conn:
        found = rows(conn, f'SELECT version FROM "{schema}".schema_migrations ORDER BY version')
    return [row["version"] for row in found]


def test_every_step_names_the_oldest_program_that_can_work_after_it() -> None:
    for _, name, text in migration_files():
        assert "-- compatible_from: " in text, name
    assert list(range(1, len(VERSIONS) + 1)) == VERSIONS


def test_an_empty_database_gets_every_step_once(empty_dsn: str) -> None:
    assert [step.version for step in migrate(empty_dsn)] == VERSIONS
    assert migrate(empty_dsn) == []
    assert applied(empty_dsn) == VERSIONS


def test_a_schema_name_with_a_space_or_a_quote_works(empty_dsn: str) -> None:
    for schema in ("q x", 'say "hi"', "Ünïcode", "public"):
        assert len(migrate(empty_dsn, schema)) == len(VERSIONS)
        with session(empty_dsn) as conn:
            name = psycopg.sql.Identifier(schema, "jobs").as_string(None)
            row = rows(conn, f'INSERT INTO {name} (payload) VALUES (\'{{"type": "a"}}\') RETURNING id')
            assert row == [{"id": 1}]


def test_two_schemas_of_one_database_do_not_meet(empty_dsn: str) -> None:
    migrate(empty_dsn, "one")
    migrate(empty_dsn, "two")

    with session(empty_dsn) as conn:
        conn.execute("INSERT INTO one.jobs (payload, idempotency_key) VALUES ('{\"type\": \"a\"}', 'k')")

        assert value(conn, "SELECT count(*) FROM one.job_keys") == 1
        assert value(conn, "SELECT count(*) FROM two.job_keys") == 0
        assert value(conn, "SELECT one.wake_channel() <> two.wake_channel()")


def test_eight_at_once_apply_each_step_once(empty_dsn: str) -> None:
    running = [InBackground(lambda: migrate(empty_dsn)) for _ in range(8)]

    done = [step.version for call in running for step in call.result()]

    assert sorted(done) == VERSIONS
    assert applied(empty_dsn) == VERSIONS


KILLED = """
import sys
from pgq_core.migrate import Migration, migrations, run_migrations
slow = Migration(int(sys.argv[2]), "slow", "CREATE TABLE half (id int); SELECT pg_sleep(300)", 1)
run_migrations(sys.argv[1], steps=[*migrations()[:2], slow])
"""


@pytest.mark.system
def test_one_killed_in_mid_migration_leaves_no_half_step_and_the_others_go_on(empty_dsn: str) -> None:
    # So that the server, too, notices at once that its client is gone.
    watched = make_conninfo(empty_dsn, options="-c client_connection_check_interval=100")
    victim = subprocess.Popen([sys.executable, "-c", KILLED, watched, "3"], stderr=subprocess.PIPE, text=True)
    with session(empty_dsn) as conn:
        eventually(
            lambda: value(
                conn,
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()",
            ),
            timeout=60,
        )
    others = [InBackground(lambda: migrate(empty_dsn)) for _ in range(7)]

    victim.kill()
    victim.communicate(timeout=60)

    done = [step.version for call in others for step in call.result()]
    assert sorted(done) == VERSIONS[2:]
    assert applied(empty_dsn) == VERSIONS
    with session(empty_dsn) as conn:
        assert value(conn, "SELECT to_regclass('pgq_core.half')") is None


def test_another_migrator_is_waited_for_only_so_long(empty_dsn: str) -> None:
    with session(empty_dsn, autocommit=False) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('pgq migrate pgq_core', 0))")

        with pytest.raises(MigrationBlocked, match="another program has been migrating"):
            run_migrations(empty_dsn, wait=timedelta(seconds=0.2))

    assert len(migrate(empty_dsn)) == len(VERSIONS)


def test_a_step_that_fails_leaves_nothing_behind(empty_dsn: str) -> None:
    broken = step("CREATE TABLE half (id int); SELECT 1/0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        run_migrations(empty_dsn, steps=with_step(broken))

    assert applied(empty_dsn) == VERSIONS
    with session(empty_dsn) as conn:
        assert value(conn, "SELECT to_regclass('pgq_core.half')") is None


def test_a_step_that_was_applied_with_another_text_is_refused(dsn: str) -> None:
    with session(dsn) as conn:
        conn.execute("UPDATE schema_migrations SET checksum = 'other' WHERE version = 2")

    with pytest.raises(SchemaChanged, match=r"migration 2 .* another text"):
        migrate(dsn)


def test_a_newer_schema_that_still_serves_this_program_is_left_alone(dsn: str) -> None:
    run_migrations(dsn, steps=with_step(step("CREATE TABLE later (id int)", compatible_from=newest_version())))

    assert migrate(dsn) == []


def test_a_newer_schema_that_left_this_program_behind_is_refused(dsn: str) -> None:
    run_migrations(dsn, steps=with_step(step("CREATE TABLE later (id int)")))

    with pytest.raises(SchemaTooNew, match=f"is at version {NEXT} and serves programs from version {NEXT} on"):
        migrate(dsn)


def test_time_outs_of_the_administrator_do_not_cut_a_step_short(empty_dsn: str) -> None:
    options = "-c statement_timeout=100 -c idle_in_transaction_session_timeout=200"
    impatient = make_conninfo(empty_dsn, options=options)

    report = run_migrations(impatient, steps=with_step(step("SELECT pg_sleep(0.4)")))

    assert report.version == NEXT


def test_a_search_path_of_the_session_does_not_matter(empty_dsn: str) -> None:
    bare = make_conninfo(empty_dsn, options="-c search_path=")

    migrate(bare, "q x")

    assert applied(empty_dsn, "q x") == VERSIONS


CONCURRENT = """-- concurrently
-- compatible_from: 1
CREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_test_idx ON {schema}.jobs (created_at)
"""
BEGUN = "SELECT count(*) FROM pg_class WHERE relname = 'jobs_test_idx'"


def test_a_concurrent_step_runs_outside_a_transaction_while_the_table_is_written(dsn: str) -> None:
    with session(dsn, autocommit=False) as writer:
        writer.execute('INSERT INTO jobs (payload) VALUES (\'{"type": "a"}\')')
        building = InBackground(lambda: run_migrations(dsn, steps=with_step(step(CONCURRENT))))
        with session(dsn) as conn:
            eventually(lambda: value(conn, BEGUN))
            waiting = [InBackground(lambda: run_migrations(dsn, steps=with_step(step(CONCURRENT)))) for _ in range(2)]
            conn.execute('INSERT INTO jobs (payload) VALUES (\'{"type": "b"}\')')
        writer.commit()

    assert [one.version for one in building.result().applied] == [NEXT]
    assert [call.result().applied for call in waiting] == [(), ()]
    with session(dsn) as conn:
        assert value(conn, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_test_idx'::regclass")


def test_an_index_whose_build_was_interrupted_is_built_again(dsn: str) -> None:
    with session(dsn, autocommit=False) as writer, session(dsn) as builder, session(dsn) as conn:
        writer.execute('INSERT INTO jobs (payload) VALUES (\'{"type": "a"}\')')
        statement = concurrent_statement(step(CONCURRENT), "pgq_core")
        building = InBackground(lambda: builder.execute(statement))
        eventually(lambda: value(conn, BEGUN))
        builder.cancel_safe()
        with pytest.raises(psycopg.errors.QueryCanceled):
            building.result()
    with session(dsn) as conn:
        validity = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'jobs_test_idx'::regclass"
        assert value(conn, validity) is False

        run_migrations(dsn, steps=with_step(step(CONCURRENT)))

        assert value(conn, validity) is True


def test_the_shipped_texts_are_in_the_package() -> None:
    import pgq_core.sql

    folder = Path(pgq_core.sql.__file__).parent / "migrations"
    assert sorted(path.stem for path in folder.glob("*.sql")) == [step.name for step in migrations()]
