"""What all commands have in common: global options, exit codes, help, policies, hostile text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from pgq_core.cli import app
from pgq_core.cli.root import COMMANDS
from tests.cli.conftest import Cli
from tests.support.zoo import add_dead_letter, add_job, add_run, add_worker, value_of

Arrange = Callable[..., Any]

HOSTILE = {
    "markup": "[/x] [red]y[/red] [link=http://x]z[/link] [@click=app.quit]q[/] [[ :smile: {x} %s",
    "escapes": "\x1b[2J\x1b]0;title\x07\x1b]52;c;aGk=\x07\x9b31m\x08\x7f",
    "direction": "abc\u202efdp.exe\u2066\u200f",
    "widths": "e\u0301\u200d\ufe0f 漢字 🧑\u200d🚀",
    "lines": "one\r\ntwo\rthree\u2028four\x0b\x0c",
    "long": "x" * 1_000_000,
}
READS = (
    ("dead",),
    ("dead", "groups"),
    ("dead", "show", "1"),
    ("jobs",),
    ("jobs", "show", "1"),
    ("runs",),
    ("runs", "show", "1"),
    ("queues",),
    ("workers",),
    ("workers", "log", "w-1"),
    ("operations",),
    ("operations", "show", "1"),
    ("stats",),
)
CONTROLS = frozenset(map(chr, [*range(9), *range(11, 32), 127, *range(128, 160)])) | set("\u202e\u2066\u200f\u2028")


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_text_is_shown_and_can_do_nothing(cli: Cli, arrange: Arrange, text: str) -> None:
    name = text[:150].replace("\x00", "")
    letter = arrange(add_dead_letter, name, queue=name, error=text, data={"text": text}, fingerprint=name[:50])
    job_id = arrange(add_job, name, queue=name, data={name: text}, last_error=text, attempts=1)
    run_id = arrange(add_run, job_id, queue=name, job_type=name, worker_id=name, error=text)
    arrange(add_worker, "w-1", pool=name, queues=(name,), job_types=("other",))
    arrange(value_of, "UPDATE workers SET last_output = %s, exit_reason = %s RETURNING 1", text, text)
    cli("queues", "pause", "default", "--reason", text)
    ids = {"dead": letter, "jobs": job_id, "runs": run_id}

    for command in READS:
        args = [str(ids.get(command[0], "1")) if arg == "1" else arg for arg in command]
        answer = cli(*args)
        assert answer.code == 0, answer.err
        assert not CONTROLS & set(answer.out + answer.err)
        assert json.loads(cli(*args, "--json").out) is not None


def test_markup_is_printed_as_it_is(cli: Cli, arrange: Arrange) -> None:
    letter = arrange(add_dead_letter, error=HOSTILE["markup"])

    assert HOSTILE["markup"] in cli("dead").out
    assert HOSTILE["markup"] in cli("dead", "show", letter).out


def test_whole_numbers_beyond_2_to_the_53_are_exact_in_tables_and_json(cli: Cli, arrange: Arrange) -> None:
    big = 2**53 + 1
    arrange(value_of, "SELECT setval(pg_get_serial_sequence('jobs', 'id'), %s)", big - 1)
    cli("enqueue", "a")

    assert cli("jobs", "--json").json[0]["id"] == big
    assert str(big) in cli("jobs").out
    assert cli("jobs", "cancel", big).code == 0


@pytest.mark.parametrize("place", ["before", "after", "equals"])
def test_global_options_may_stand_anywhere(cli: Cli, dsn: str, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    given = ["--dsn", dsn, "--schema", "pgq_core"]
    args = {
        "before": [*given, "jobs", "list", "--json"],
        "after": ["jobs", "list", "--json", *given],
        "equals": ["jobs", f"--dsn={dsn}", "--json", "--schema=pgq_core"],
    }[place]

    answer = cli(*args)

    assert (answer.code, answer.json) == (0, [])


def test_flag_wins_over_environment(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGQ_SCHEMA", "elsewhere")

    assert cli("jobs").code == 3
    assert cli("jobs", "--schema", "pgq_core").code == 0


def test_schema_that_is_missing_is_named_with_the_command_that_makes_it(cli: Cli) -> None:
    answer = cli("jobs", "--schema", "elsewhere")

    assert answer.code == 3
    assert answer.err == 'error: schema "elsewhere" holds no job tables yet; run: pgq-core migrate --schema elsewhere\n'


def test_unreachable_database_is_exit_code_3_and_one_line(cli: Cli) -> None:
    answer = cli("jobs", "--dsn", "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2")

    assert (answer.code, answer.out) == (3, "")
    assert answer.err.startswith("error: the database cannot be reached right now")
    assert answer.err.count("\n") == 1


def test_database_that_says_nothing_is_given_up_with_exit_code_3(
    cli: Cli, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock on the whole table stands for a server that is suspended: the command cannot tell the two apart."""
    monkeypatch.setenv("PGQ_ANSWER_WITHIN", "1")
    with psycopg.connect(dsn) as other:
        other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        answer = cli("jobs")

    assert (answer.code, answer.out) == (3, "")
    assert "no answer within 1 s" in answer.err


def test_address_that_is_none_is_exit_code_2(cli: Cli) -> None:
    answer = cli("jobs", "--dsn", "not an address")

    assert answer.code == 2
    assert "Traceback" not in answer.err


def test_debug_shows_where_an_error_came_from(cli: Cli) -> None:
    from pgq_core.errors import SchemaMissing

    with pytest.raises(SchemaMissing):
        cli("jobs", "--schema", "elsewhere", "--debug")


@pytest.mark.parametrize(
    "args",
    [
        ("enqueue", "a"),
        ("jobs", "cancel", "1"),
        ("dead", "replay", "1"),
        ("dead", "discard", "--all", "--yes"),
        ("queues", "pause", "default"),
        ("queues", "purge", "default", "--yes"),
        ("pools", "scale", "a", "1", "--host", "h"),
        ("workers", "drain", "w"),
        ("operations", "undo", "1"),
        ("migrate",),
    ],
)
def test_read_only_refuses_every_change_with_exit_code_4(cli: Cli, arrange: Arrange, args: tuple[str, ...]) -> None:
    arrange(add_dead_letter)
    cli("queues", "pause", "other")

    answer = cli("--read-only", *args)

    assert answer.code == 4
    assert "only reading is allowed" in answer.err
    assert arrange(value_of, "SELECT count(*) FROM operations") == 1
    assert arrange(value_of, "SELECT count(*) FROM jobs") == 0


def test_read_only_reads_and_previews(cli: Cli, arrange: Arrange, monkeypatch: pytest.MonkeyPatch) -> None:
    arrange(add_dead_letter)
    monkeypatch.setenv("PGQ_READ_ONLY", "1")

    assert cli("dead").code == 0
    assert cli("dead", "replay", "--all", "--dry-run").code == 0
    assert cli("stats").code == 0


def test_database_that_takes_no_writes_is_a_policy_too(cli: Cli, arrange: Arrange, dsn: str) -> None:
    letter = arrange(add_dead_letter)
    read_only = f"{dsn}{'&' if '?' in dsn else '?'}options=-c%20default_transaction_read_only%3Don"

    answer = cli("dead", "replay", letter, "--dsn", read_only)

    assert (answer.code, "this database is read-only" in answer.err) == (4, True)


def test_settings_that_do_not_fit_are_a_usage_error(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGQ_HEARTBEAT", "20")

    answer = cli("jobs")

    assert (answer.code, "stale_limit" in answer.err) == (2, True)


@pytest.mark.parametrize(
    "args", [("nonsense",), ("dead", "nonsense"), ("jobs", "--nonsense"), ("jobs", "show"), ("jobs", "show", "x")]
)
def test_unknown_commands_and_options_are_usage_errors(cli: Cli, args: tuple[str, ...]) -> None:
    assert cli(*args).code == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    answer = CliRunner().invoke(app, [command, "--help"])

    assert answer.exit_code == 0
    assert "Usage: " in answer.stdout


def test_help_names_every_command_and_the_version_is_printed() -> None:
    listed = CliRunner().invoke(app, ["--help"]).stdout

    assert all(f"\n  {command} " in listed for command in COMMANDS)
    assert CliRunner().invoke(app, ["--version"]).stdout.startswith("pgq-core ")


def test_empty_lists_say_so_on_stderr_and_are_empty_in_json(cli: Cli) -> None:
    for command, words in (
        ("jobs", "no jobs"),
        ("dead", "no dead letters"),
        ("runs", "no runs"),
        ("queues", "no queues yet"),
    ):
        answer = cli(command)
        assert (answer.code, answer.out, answer.err) == (0, "", f"{words}\n")
        assert cli(command, "--json").json == []
