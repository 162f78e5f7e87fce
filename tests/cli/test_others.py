from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgq_core.cli.checkup import Verdict, _vacuum
from pgq_core.migrate import migrations
from pgq_core.queries.reads import HealthRow, ServerRow
from tests.cli.conftest import Cli
from tests.support.zoo import (
    add_dead_letter,
    add_job,
    add_pool,
    add_run,
    add_running_job,
    add_stats,
    add_worker,
    value_of,
)

Arrange = Callable[..., Any]


def test_queues_show_depth_and_pause(cli: Cli, arrange: Arrange) -> None:
    arrange(add_job)
    arrange(add_stats, succeeded=9, retried=1)

    assert cli("queues", "pause", "default", "--reason", "maintenance").code == 0
    (queue,) = cli("queues", "--json").json

    assert queue["pending"] == {"value": 1, "exact": True}
    assert (queue["paused"], queue["paused_by"], queue["pause_reason"]) == (True, "ops@test", "maintenance")
    assert queue["failure_share"] == pytest.approx(0.1)
    assert "paused by ops@test" in cli("queues").out
    assert cli("queues", "resume", "default").code == 0
    again = cli("queues", "resume", "default")
    assert (again.code, again.err) == (1, "error: queue default is not paused\n")


def test_queue_is_set_to_keep_less(cli: Cli, arrange: Arrange) -> None:
    done = cli("queues", "set", "mail", "--audit", "sample", "--share", "0.05", "--reason", "too many rows")

    assert done.code == 0
    assert done.err.endswith("\nqueue mail keeps failures and 5 % of successes (operation 1)\n")
    (queue,) = cli("queues", "--json").json
    assert (queue["audit"], queue["audit_sample"]) == ("sample", 0.05)
    assert "mail: keeps failures and 5 % of successes in job_runs\n" in cli("queues").err
    assert cli("operations", "undo", 1).code == 0
    assert arrange(value_of, "SELECT audit FROM queues") == "all"
    assert "job_runs" not in cli("queues").err
    for wrong in (["--audit", "some"], ["--audit", "all", "--share", "0.5"], ["--audit", "sample", "--share", "2"], []):
        assert cli("queues", "set", "mail", *wrong).code == 2


def test_queue_that_nobody_knows_is_paused_and_named_as_such(cli: Cli, arrange: Arrange) -> None:
    arrange(add_job)

    mistyped = cli("queues", "pause", "defualt")
    known = cli("queues", "pause", "default")

    assert mistyped.code == 0
    assert mistyped.err.startswith("queue defualt has no job, no worker and no pool so far; did you mean default?\n")
    assert known.err.startswith("queue default is paused")
    cli("queues", "resume", "defualt")
    assert [queue["name"] for queue in cli("queues", "--json").json] == ["default"]


def test_purge_asks_and_names_the_number(cli: Cli, arrange: Arrange) -> None:
    for _ in range(3):
        arrange(add_job)

    refused = cli("queues", "purge", "default")
    assert (refused.code, "Cancel 3 jobs of queue default" in refused.err) == (2, True)
    assert "3 jobs of queue default would be cancelled" in cli("queues", "purge", "default", "--dry-run").err
    assert cli("queues", "purge", "default", "--dry-run", "--json").json["count"] == {"value": 3, "exact": True}
    done = cli("queues", "purge", "default", "--yes", "--json")
    assert (done.code, done.json["affected"]) == (0, 3)
    assert cli("queues", "purge", "default").code == 0


def test_workers_are_listed_and_asked(cli: Cli, arrange: Arrange) -> None:
    arrange(add_worker, "w-1")
    arrange(add_running_job, "w-1")

    (worker,) = cli("workers", "--json").json
    assert (worker["id"], worker["queues"], worker["is_stale"]) == ("w-1", ["default"], False)
    assert "w-1" in cli("workers").out
    assert len(cli("workers", "show", "w-1", "--json").json) == 1
    assert "send_email" in cli("workers", "show", "w-1").out
    assert cli("workers", "log", "w-1").out == "last words\n"
    assert cli("workers", "log", "w-1", "--json").json["output"] == "last words"
    assert cli("workers", "log", "nobody").code == 1
    for verb in ("drain", "restart", "stop"):
        assert cli("workers", verb, "w-1").code == 0
        assert arrange(value_of, "SELECT wanted FROM workers") == verb
    assert cli("workers", "drain", "nobody").code == 1


def test_pools_are_scaled_by_number_and_by_step(cli: Cli, arrange: Arrange) -> None:
    arrange(add_pool, "emails", wanted=2, maximum=5)

    answer = cli("pools", "scale", "emails", "4")
    assert (answer.code, "no supervisor carries it out now; on " in answer.err) == (0, True)
    assert cli("pools", "scale", "emails", "+1").code == 0
    assert cli("pools", "scale", "emails", "-2").code == 0
    assert arrange(value_of, "SELECT wanted FROM worker_pools") == 3
    over = cli("pools", "scale", "emails", "6")
    assert (over.code, "between 0 and 5 workers, not 6" in over.err) == (1, True)
    assert cli("pools", "scale", "emails", "many").code == 2
    assert cli("pools", "scale", "nobody", "1").code == 1
    assert cli("pools", "restart", "emails").code == 0
    assert cli("pools", "drain", "emails").code == 0
    (pool,) = cli("pools", "--json").json
    assert (pool["host"], pool["wanted"]) == ("host-a", 0)
    assert "no supervisor" in cli("pools").out


def test_pool_that_several_hosts_have_needs_the_host(cli: Cli, arrange: Arrange) -> None:
    arrange(add_pool, "emails", host="host-a")
    arrange(add_pool, "emails", host="host-b")

    assert cli("pools", "scale", "emails", "1").code == 2
    assert cli("pools", "scale", "emails", "1", "--host", "host-b").code == 0
    assert arrange(value_of, "SELECT wanted FROM worker_pools WHERE host = 'host-b'") == 1


def test_runs_are_listed_filtered_and_shown(cli: Cli, arrange: Arrange) -> None:
    run_id = arrange(add_run, 7, outcome="retried", error="boom\nsecond line", seconds=2)
    arrange(add_run, 8)

    assert len(cli("runs", "--json").json) == 2
    (run,) = cli("runs", "--outcome", "retried", "--outcome", "dead", "--json").json
    assert (run["id"], run["duration_seconds"]) == (run_id, 2.0)
    assert [r["job_id"] for r in cli("runs", "--job", 8, "--json").json] == [8]
    assert "boom⏎second line" in cli("runs").out
    assert "boom\nsecond line" in cli("runs", "show", run_id).out
    assert cli("runs", "show", run_id, "--json").json["error"] == "boom\nsecond line"
    assert cli("runs", "show", 987654).code == 1
    assert cli("runs", "--outcome", "lucky").code == 2


def test_operations_tell_who_did_what_and_why(cli: Cli, arrange: Arrange) -> None:
    cli("queues", "pause", "default", "--because", "why not")

    (operation,) = cli("operations", "--json").json
    assert operation["operator"] == "ops@test"
    assert operation["can_be_undone"] is True
    assert "why not" in cli("operations").out
    assert "pause" in cli("operations", "show", 1).out
    assert cli("operations", "show", 1, "--json").json["parameters"] == {}
    assert cli("operations", "undo", 1).code == 0
    assert "undone by ops@test" in cli("operations").out
    assert cli("operations", "show", 987654).code == 1
    assert cli("operations", "undo", 987654).code == 1


def test_another_operator_can_be_named(cli: Cli, arrange: Arrange) -> None:
    cli("queues", "pause", "default", "--operator", "on-call@night")

    assert arrange(value_of, "SELECT operator FROM operations") == "on-call@night"


def test_stats_are_the_whole_picture(cli: Cli, arrange: Arrange) -> None:
    arrange(add_job)
    arrange(add_dead_letter)
    arrange(add_stats, succeeded=5)

    picture = cli("stats", "--window", "1h", "--json").json

    assert {"taken_at", "server", "queues", "workers", "pools", "supervisors", "throughput", "dead_unresolved"} <= set(
        picture
    )
    assert len(picture["throughput"]) == 241
    assert picture["dead_unresolved"] == {"value": 1, "exact": True}
    assert "5 succeeded" in cli("stats").out
    assert cli("stats", "--window", "1y").code == 2


def test_doctor_checks_the_database_and_tells_where_settings_come_from(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGQ_POLL", "0.25")
    monkeypatch.setenv("QUEUE", "a,b")

    report = cli("doctor", "--schema", "pgq_core", "--json")

    assert report.code == 0
    origins = {setting["name"]: (setting["value"], setting["source"]) for setting in report.json["settings"]}
    assert origins["poll"] == ("0.25", "environment PGQ_POLL")
    assert origins["queues"] == ("a,b", "environment QUEUE")
    assert origins["db_schema"] == ("pgq_core", "flag")
    assert origins["grace"] == ("30", "default")
    assert origins["resolved_dead_letters_kept"] == ("2592000", "default")
    checks = {check["check"]: check["verdict"] for check in report.json["checks"]}
    assert checks == {
        **dict.fromkeys(("connection", "server", "schema", "plain SQL", "rights", "writable", "pooler", "clock"), "ok"),
        **dict.fromkeys(("triggers", "vacuum", "partitions", "connections", "loops"), "ok"),
        "durability": "warn",  # servers of tests forget what was not written
        "workers": "warn",
    }
    assert "none alive" in cli("doctor").out


def test_doctor_names_triggers_that_do_not_fire(cli: Cli, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("ALTER TABLE jobs DISABLE TRIGGER USER")
        report = cli("doctor", "--json")
        conn.execute("ALTER TABLE jobs ENABLE TRIGGER USER")
        conn.execute(f"ALTER DATABASE {conn.info.dbname} SET session_replication_role = replica")
        second = cli("doctor", "--json")

    for checks in (report.json["checks"], second.json["checks"]):
        (found,) = [check for check in checks if check["check"] == "triggers"]
        assert found["verdict"] == "fail"
        assert "of jobs" in found["detail"]
    assert report.code == second.code == 3


def test_doctor_reads_the_settings_file(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "pgq-tui"
    folder.mkdir()
    (folder / "config.toml").write_text('grace = 12.5\nschema = "pgq_core"\n')

    origins = {s["name"]: (s["value"], s["source"]) for s in cli("doctor", "--json").json["settings"]}

    assert origins["grace"] == ("12.5", str(folder / "config.toml"))
    assert origins["db_schema"] == ("pgq_core", str(folder / "config.toml"))


def test_doctor_shows_no_password(cli: Cli) -> None:
    report = cli("doctor", "--dsn", "postgresql://me:s3cret@127.0.0.1:1/x?connect_timeout=1")

    assert report.code == 3
    assert "s3cret" not in report.out + report.err
    assert "fail" in report.out


def test_doctor_names_first_form_tables_in_public(cli: Cli, arrange: Arrange) -> None:
    arrange(_create_first_form)

    report = cli("doctor", "--json").json

    (finding,) = [check for check in report["checks"] if check["check"] == "first form"]
    assert finding["remedy"] == "to adopt them with all their rows: pgq-core migrate --schema public"


async def _create_first_form(conn: Any) -> None:
    text = migrations()[0].text
    table = text[text.index("CREATE TABLE IF NOT EXISTS jobs") : text.index("CREATE TABLE IF NOT EXISTS dead_letter")]
    await conn.execute(table.replace("EXISTS jobs", "EXISTS public.jobs").encode())


def test_old_transaction_that_holds_vacuum_back_is_named() -> None:
    holder = "pid 4711 me psql (idle in transaction)"
    server = ServerRow(
        datetime.now(UTC),
        "18.6",
        "app",
        "me",
        is_read_only=False,
        waits_for_disk=True,
        inserted_total=1,
        holder_age=3600.0,
        holder=holder,
    )
    health = HealthRow(0.0, 1, 180006, 100, 5, [], [], [], 10, 20, None, 7, 1)

    finding = _vacuum(server, health)

    assert finding.verdict is Verdict.WARN
    assert finding.detail == f"held back for 1h00m by {holder}"
