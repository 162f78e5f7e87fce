"""The printed SQL, run by psql, gives the schema that migrate makes."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgq_core.embedded.binaries import find_binaries
from pgq_core.migrate import migrate, migrations, newest_version, print_sql, printing, run_migrations, steps
from tests.schema.first_form import FIRST_FORM
from tests.schema.sessions import row, rows, session, value
from tests.schema.test_migrate import CONCURRENT, NEXT, step, with_step
from tests.support.databases import new_database

SCHEMA = "q x"


@pytest.fixture
def other_dsn(server_dsn: str) -> Iterator[str]:
    with new_database(server_dsn) as address:
        yield address


def run_psql(dsn: str, script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "schema.sql"
    file.write_text(script, encoding="utf-8")
    command = [find_binaries().program("psql"), "--no-psqlrc", "--quiet", "--file", str(file), dsn]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def dump(dsn: str, schema: str = SCHEMA) -> str:
    command = [find_binaries().program("pg_dump"), "--schema-only", "--schema", f'"{schema}"', dsn]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    return re.sub(r"^\\(un)?restrict .*$", "", printed, flags=re.MULTILINE)


def test_psql_makes_the_schema_that_migrate_makes(empty_dsn: str, other_dsn: str, tmp_path: Path) -> None:
    migrate(empty_dsn, SCHEMA)
    done = run_psql(other_dsn, print_sql(SCHEMA), tmp_path)

    assert done.returncode == 0, done.stderr
    assert dump(other_dsn) == dump(empty_dsn)
    versions = f'SELECT version, name, checksum, compatible_from FROM "{SCHEMA}".schema_migrations ORDER BY version'
    parameters = f'SELECT * FROM "{SCHEMA}".parameters ORDER BY name'
    with session(empty_dsn) as ours, session(other_dsn) as theirs:
        assert rows(theirs, versions) == rows(ours, versions)
        assert rows(theirs, parameters) == rows(ours, parameters)
    assert migrate(other_dsn, SCHEMA) == []


def test_the_rest_can_be_printed_for_a_schema_that_was_begun(empty_dsn: str, tmp_path: Path) -> None:
    run_migrations(empty_dsn, SCHEMA, steps=migrations()[:2])

    done = run_psql(empty_dsn, print_sql(SCHEMA, after=2), tmp_path)

    assert done.returncode == 0, done.stderr
    assert migrate(empty_dsn, SCHEMA) == []
    assert print_sql(SCHEMA, after=newest_version()) == ""


def test_a_second_run_stops_at_the_first_version_row_and_changes_nothing(empty_dsn: str, tmp_path: Path) -> None:
    migrate(empty_dsn, SCHEMA)
    before = dump(empty_dsn)

    done = run_psql(empty_dsn, print_sql(SCHEMA), tmp_path)

    assert done.returncode == 3
    assert "already exists" in done.stderr
    assert dump(empty_dsn) == before


def test_first_form_tables_are_adopted_by_the_printed_sql_too(empty_dsn: str, tmp_path: Path) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute("""INSERT INTO jobs (payload) VALUES ('{"type": "a"}')""")

        done = run_psql(empty_dsn, print_sql("public"), tmp_path)

        assert done.returncode == 0, done.stderr
        assert row(conn, "SELECT job_type, status FROM jobs") == {"job_type": "a", "status": "pending"}


def test_a_refusal_stops_psql_too(empty_dsn: str, tmp_path: Path) -> None:
    with session(empty_dsn) as conn:
        conn.execute(FIRST_FORM)
        conn.execute("""INSERT INTO jobs (payload, locked_by, locked_at) VALUES ('{"type": "a"}', 'w', now())""")

        done = run_psql(empty_dsn, print_sql("public"), tmp_path)

        assert done.returncode == 3
        assert "jobs are locked right now by w" in done.stderr
        assert value(conn, "SELECT to_regclass('schema_migrations')") is None


def test_a_concurrent_step_is_printed_outside_its_transaction(
    empty_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (steps, printing):
        monkeypatch.setattr(module, "migrations", lambda: tuple(with_step(step(CONCURRENT))))

    done = run_psql(empty_dsn, print_sql(SCHEMA), tmp_path)

    assert done.returncode == 0, done.stderr
    with session(empty_dsn) as conn:
        assert value(
            conn, f"""SELECT indisvalid FROM pg_index WHERE indexrelid = '"{SCHEMA}".jobs_test_idx'::regclass"""
        )
        assert value(conn, f'SELECT max(version) FROM "{SCHEMA}".schema_migrations') == NEXT


def test_the_search_path_is_set_or_the_line_is_told(empty_dsn: str) -> None:
    report = run_migrations(empty_dsn, SCHEMA)
    (notice,) = report.notices()
    line = re.search(r"(ALTER DATABASE [^;]*);", notice)
    assert line is not None

    with session(empty_dsn) as conn:
        conn.execute(line[1])
    with session(empty_dsn) as conn:
        assert value(conn, "SELECT count(*) FROM jobs") == 0
        assert value(conn, "SHOW search_path") == '"q x", "$user", public'
    assert run_migrations(empty_dsn, SCHEMA).notices() == []


def test_the_search_path_is_set_on_request(empty_dsn: str) -> None:
    report = run_migrations(empty_dsn, set_search_path=True)

    assert report.is_search_path_set
    with session(empty_dsn) as conn:
        assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_public_needs_no_search_path(empty_dsn: str) -> None:
    assert run_migrations(empty_dsn, "public").notices() == []
