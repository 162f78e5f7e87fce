"""Settings that are wrong, misspelt or unreadable: said in a line that names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgq_core.migrate import migrate
from tests.cli.conftest import Cli


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The settings file of a user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = tmp_path / "pgq-tui" / "config.toml"
    path.parent.mkdir()
    return path


@pytest.mark.parametrize("content", [b"concurrency = ", b"\xff\xfe", b"[api"])
@pytest.mark.parametrize("command", ["queues", "doctor"])
def test_a_file_that_cannot_be_read_is_named(cli: Cli, file: Path, content: bytes, command: str) -> None:
    file.write_bytes(content)

    answer = cli(command)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith(f"error: {file}: ")
    assert answer.err.count("\n") == 1


def test_a_folder_in_place_of_the_file_is_named(cli: Cli, file: Path) -> None:
    file.mkdir()

    answer = cli("queues")

    assert answer.code == 2
    assert answer.err.startswith(f"error: {file}: ")


def test_a_wrong_value_is_told_with_its_source(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("concurrency = 0\n")
    monkeypatch.setenv("PGQ_POLL", "often")

    answer = cli("queues")

    assert answer.code == 2
    assert f"(from: {file})" in answer.err
    assert "poll: " in answer.err
    assert "(from: environment PGQ_POLL)" in answer.err


def test_settings_that_do_not_go_together_are_told_in_our_words(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGQ_STALE_LIMIT", "5")

    answer = cli("queues")

    assert answer.err.startswith("error: settings: stale_limit (5.0 s) must be")


@pytest.mark.parametrize("address", ["foo", "mysql://me:s3cret@x/y", "postgresql://me:s3%cret@x/y"])
def test_what_is_no_address_is_not_taken_for_a_database_that_refuses(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", address)

    answer = cli("queues")

    assert answer.code == 2
    assert "is no address of a PostgreSQL server" in answer.err
    assert "(from: environment DATABASE_URL)" in answer.err
    assert "s3" not in answer.err


def test_doctor_names_what_nobody_reads(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("concurency = 5\npoll = 0.5\n[api]\nprt = 1\nport = 8081\n")
    monkeypatch.setenv("PGQ_CONCURENCY", "5")
    monkeypatch.setenv("PGQ_API_PORT", "8081")

    checks = cli("doctor", "--json").json["checks"]

    found = [(check["detail"], check["remedy"]) for check in checks if check["check"] == "settings"]
    assert found == [
        ("PGQ_CONCURENCY in the environment is no setting", "did you mean PGQ_CONCURRENCY?"),
        (f"concurency in {file} is no setting", "did you mean concurrency?"),
        (f"api.prt in {file} is no setting", "did you mean port?"),
    ]


def test_doctor_knows_every_name_that_is_read(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGQ_SCHEMA", "PGQ_QUEUE"):
        monkeypatch.setenv(name, "pgq_core")
    for name in ("PGQ_HOME", "PGQ_TEST_DSN", "PGQ_APP", "PGQ_APP_DIR", "PGQ_UNKNOWN_TYPES", "PGQ_BENCH_SLOT"):
        monkeypatch.setenv(name, "refuse")

    checks = cli("doctor", "--json").json["checks"]

    assert [check for check in checks if check["check"] == "settings"] == []


def test_doctor_shows_the_schema_that_is_used_and_the_one_beside_it(cli: Cli, empty_dsn: str) -> None:
    migrate(empty_dsn, "public")

    report = cli("doctor", "--dsn", empty_dsn, "--json").json
    (origin,) = [setting for setting in report["settings"] if setting["name"] == "db_schema"]
    assert (origin["value"], origin["source"]) == ("public", "found: pgq_core holds no tables here")

    migrate(empty_dsn, "pgq_core")
    report = cli("doctor", "--dsn", empty_dsn, "--json").json
    (finding,) = [check for check in report["checks"] if check["check"] == "other schema"]
    assert finding["verdict"] == "warn"
    assert finding["detail"].startswith('schema "public" holds job tables, too')
