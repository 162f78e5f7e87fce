"""`pgq-core` as a process: pipes, terminals, signals, the embedded server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pexpect
import psycopg
import pytest

from tests.cli.conftest import Cli, Program
from tests.support.waiting import eventually
from tests.support.zoo import add_dead_letter, add_run, value_of

Arrange = Callable[..., Any]

pytestmark = pytest.mark.system


def test_from_an_empty_database_to_a_listed_job(program: Program, empty_dsn: str) -> None:
    env = {"DATABASE_URL": empty_dsn}

    too_early = program("jobs", env=env)
    assert (too_early.code, "pgq-core migrate" in too_early.err) == (3, True)
    migrated = program("migrate", "--json", env=env)
    assert (migrated.code, migrated.json["applied"][0]["version"]) == (0, 1)
    assert program("migrate", env=env).err.startswith("nothing to do\n")
    assert program("enqueue", "send_email", '{"to": "a"}', env=env).code == 0
    (job,) = program("jobs", "--json", env=env).json
    assert (job["job_type"], job["status"]) == ("send_email", "pending")


def test_printed_sql_touches_no_database(program: Program) -> None:
    answer = program("migrate", "--print-sql", "--schema", "other", env={"DATABASE_URL": "postgresql://127.0.0.1:1/x"})

    assert answer.code == 0
    assert 'CREATE SCHEMA IF NOT EXISTS "other"' in answer.out


def test_list_that_nobody_reads_to_its_end_ends_quietly(dsn: str, arrange: Arrange) -> None:
    for _ in range(50):
        arrange(add_dead_letter, error="x" * 400)
    command = f"{sys.executable} -m pgq_core.cli dead --json | head -c 10"

    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "DATABASE_URL": dsn},
    )

    assert done.stdout.startswith("[")
    assert "Traceback" not in done.stderr


def test_terminal_without_utf_8_shows_question_marks_and_goes_on(program: Program, arrange: Arrange) -> None:
    arrange(add_dead_letter, error="日本 ⏎ a")

    answer = program("dead", env={"PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"})

    assert (answer.code, answer.err) == (0, "")
    assert "?? ? a" in answer.out


def test_operator_at_a_terminal_is_asked_and_may_decline(dsn: str, arrange: Arrange) -> None:
    for _ in range(2):
        arrange(add_dead_letter)

    def at_the_terminal(answer: str) -> int:
        child = pexpect.spawn(
            sys.executable,
            ["-m", "pgq_core.cli", "dead", "discard", "--all"],
            env={**os.environ, "DATABASE_URL": dsn},
            timeout=30,
        )
        child.expect("Discard 2 dead letters")
        child.sendline(answer)
        child.expect(pexpect.EOF)
        child.close()
        return int(child.exitstatus or 0)

    assert at_the_terminal("n") == 1
    assert arrange(value_of, "SELECT count(*) FROM dead_jobs") == 2
    assert at_the_terminal("y") == 0
    assert arrange(value_of, "SELECT count(*) FROM dead_jobs") == 0


@pytest.fixture
def tail(dsn: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "pgq_core.cli", "tail", "--json", "--poll", "0.05", "--queue", "wanted"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "DATABASE_URL": dsn}
    )
    yield process
    process.kill()
    process.communicate()


def test_tail_prints_each_run_as_it_ends_survives_a_cut_connection_and_stops_on_ctrl_c(
    tail: subprocess.Popen[str], dsn: str, arrange: Arrange
) -> None:
    assert tail.stdout is not None
    arrange(add_run, 1, queue="wanted")
    _wait_for_follower(dsn)
    arrange(add_run, 2, queue="other")
    arrange(add_run, 3, queue="wanted", error="boom\nline")
    lines = [json.loads(tail.stdout.readline())]
    if lines[0]["job_id"] == 1:  # it had begun before or after the first run ended
        lines.append(json.loads(tail.stdout.readline()))
    assert lines[-1]["job_id"] == 3

    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgq-core'")
    arrange(add_run, 4, queue="wanted")
    assert json.loads(tail.stdout.readline())["job_id"] == 4

    tail.send_signal(signal.SIGINT)
    assert tail.wait(timeout=30) == 0


def _wait_for_follower(dsn: str) -> None:
    """Until it has asked for new runs at least once."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        eventually(
            lambda: conn.execute(
                "SELECT 1 FROM pg_stat_activity WHERE application_name = 'pgq-core' "
                "AND datname = current_database() AND query LIKE '-- Runs above an id%'"
            ).fetchone()
        )


def test_help_and_version_import_nothing_heavy() -> None:
    code = (
        "import sys; from pgq_core.cli import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'psycopg', 'pydantic', 'rich', 'asyncio', 'orjson'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_completion_knows_the_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from pgq_core.cli import app; app(prog_name='pgq-core')"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "_PGQ_CORE_COMPLETE": "complete_bash", "COMP_WORDS": "pgq-core de", "COMP_CWORD": "1"},
    )

    assert "dead" in done.stdout


def test_without_an_address_the_embedded_server_serves_and_can_be_stopped(program: Program) -> None:
    env = {"DATABASE_URL": None}
    try:
        assert program("server", "--json", env=env).json["running"] is False
        address = program("url", env=env)
        assert (address.code, address.out.startswith("postgresql://")) == (0, True)
        with psycopg.connect(address.out.strip()) as conn:
            conn.execute('INSERT INTO jobs (payload) VALUES (\'{"type": "plain_sql"}\')')
        (job,) = program("jobs", "--json", env=env).json
        assert job["job_type"] == "plain_sql"
        with psycopg.connect(program("url", "--tcp", env=env).out.strip()) as conn:
            assert conn.info.host == "127.0.0.1"
        assert program("doctor", env=env).code == 0
    finally:
        stopped = program("server", "stop", "--yes", env=env)
    assert stopped.code == 0
    assert program("server", "--json", env=env).json["running"] is False


def test_url_prints_the_address_that_was_given(program: Program, dsn: str) -> None:
    assert program("url").out == f"{dsn}\n"
    assert program("url", "--json").json == {"url": dsn, "schema": "pgq_core", "embedded": False}
    assert program("url", "--tcp").code == 2


def test_bulk_that_the_database_cuts_short_tells_how_far_it_came(
    cli: Cli, dsn: str, arrange: Arrange, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrange(
        value_of,
        """WITH added AS (
             INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
             SELECT n, 'default', '{"type": "bulk"}', 'boom', 5 FROM generate_series(1, 600) n RETURNING 1)
           SELECT count(*) FROM added""",
    )
    from pgq_core.queries import Queries

    original = Queries.discard_dead_letters
    calls = 0

    def cut_at_the_second(queries: Queries, *args: Any, **given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgq-core'"
                )
        return original(queries, *args, **given)

    monkeypatch.setattr(Queries, "discard_dead_letters", cut_at_the_second)
    answer = cli("dead", "discard", "--all", "--yes")

    assert answer.code == 1
    assert "operation 1 stopped after 500 of 600" in answer.err
    assert arrange(value_of, "SELECT affected FROM operations") == 500
    assert arrange(value_of, "SELECT count(*) FROM dead_jobs") == 100
