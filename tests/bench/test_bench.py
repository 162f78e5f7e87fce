"""The command, with real workers on small numbers: what it prints, what it judges by, and what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from pgq_core.bench.draining import checked_runs
from pgq_core.bench.errors import BenchFailed
from pgq_core.bench.fleet import WorkerFleet
from pgq_core.bench.options import BenchOptions, ScenarioName
from pgq_core.bench.recorder import recording
from pgq_core.bench.scenarios import SCENARIOS
from pgq_core.bench.server import BenchServer
from pgq_core.bench.trial import Trial
from tests.support.waiting import eventually

pytestmark = pytest.mark.system

PROGRAM = [sys.executable, "-c", "from pgq_core.cli import main; main()"]


def bench(server_dsn: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "--dsn", server_dsn, "bench", *arguments], capture_output=True, text=True, timeout=150, check=False
    )


def databases(server_dsn: str) -> set[str]:
    with psycopg.connect(server_dsn) as conn:
        rows = conn.execute("SELECT datname FROM pg_database WHERE datname LIKE 'pgq\\_bench\\_%'").fetchall()
    return {name for (name,) in rows}


def values_of(file: Path, scenario: str) -> dict[str, dict[str, float]]:
    report = json.loads(file.read_text())
    (found,) = [result for result in report["scenarios"] if result["scenario"] == scenario]
    assert found["failures"] == []
    return {variant["variant"]: variant["rounds"][0]["values"] for variant in found["variants"]}


def test_drain_reports_what_a_job_cost(server_dsn: str, tmp_path: Path) -> None:
    done = bench(
        server_dsn,
        *("drain", "--jobs", "4000", "--workers", "2", "--rounds", "1"),
        *("--json", str(tmp_path / "b.json"), "--svg", str(tmp_path / "b.svg")),
    )

    assert done.returncode == 0, done.stderr
    assert "4,000 waiting jobs, 2 workers, handler noop" in done.stdout
    assert (
        "fsync is off, full_page_writes is off: do not compare" in done.stdout
    )  # the server of the tests does not sync
    assert "[1/1] drain, round 1, drain" in done.stderr
    values = values_of(tmp_path / "b.json", "drain")["drain"]
    assert {name: values[name] for name in ("rows_inserted", "rows_deleted")} == pytest.approx(
        {"rows_inserted": 1, "rows_deleted": 1}, abs=0.05
    )
    for name in ("rate", "wal_bytes", "cpu_machine", "rss_runner", "rss_keeper", "start_p99", "finish_p50"):
        assert values[name] > 0, name
    assert values["connections"] >= 2 * 3
    assert (tmp_path / "b.svg").read_text().startswith("<svg")
    assert databases(server_dsn) == set()


@pytest.mark.slow
def test_plain_functions_are_drained_too(server_dsn: str, tmp_path: Path) -> None:
    done = bench(
        server_dsn,
        *(
            "--jobs",
            "200",
            "--workers",
            "1",
            "--rounds",
            "1",
            "--handler",
            "thread",
            "--json",
            str(tmp_path / "b.json"),
        ),
    )

    assert done.returncode == 0, done.stderr
    assert "handler thread" in done.stdout
    assert values_of(tmp_path / "b.json", "drain")["drain"]["rate"] > 0


@pytest.mark.slow
def test_open_loop_measures_from_the_time_a_job_should_have_been_sent(server_dsn: str, tmp_path: Path) -> None:
    done = bench(
        server_dsn,
        *("steady", "--capacity", "200", "--share", "0.5", "--duration", "2", "--producers", "2", "--workers", "1"),
        *("--json", str(tmp_path / "b.json")),
    )

    assert done.returncode == 0, done.stderr
    (values,) = values_of(tmp_path / "b.json", "steady").values()
    assert values["offered"] == 100
    assert values["samples"] == 200
    assert values["start_p99"] >= values["start_p50"] > 0
    assert values["finish_p99"] >= values["start_p99"]


@pytest.mark.slow
def test_latency_tells_due_at_once_from_due_later(server_dsn: str, tmp_path: Path) -> None:
    done = bench(server_dsn, "latency", "--duration", "1", "--rounds", "1", "--json", str(tmp_path / "b.json"))

    assert done.returncode == 0, done.stderr
    values = values_of(tmp_path / "b.json", "latency")
    assert values["due at once"]["call_start_p50"] > values["due at once"]["commit_start_p50"] > 0
    assert values["due later"]["late_p50"] > 0


@pytest.mark.slow
def test_rows_in_the_way_are_compared_with_none(server_dsn: str, tmp_path: Path) -> None:
    done = bench(
        server_dsn,
        *("backlog", "future", "--jobs", "200", "--rows", "1500", "--workers", "1", "--rounds", "1"),
        *("--json", str(tmp_path / "b.json")),
    )

    assert done.returncode == 0, done.stderr
    backlog = values_of(tmp_path / "b.json", "backlog")
    assert "ratio" not in backlog["300 waiting"]
    assert backlog["1,500 waiting"]["ratio"] == pytest.approx(
        backlog["1,500 waiting"]["rate"] / backlog["300 waiting"]["rate"]
    )
    assert values_of(tmp_path / "b.json", "future")["1,500 in front"]["ratio"] > 0


@pytest.mark.slow
def test_held_snapshot_keeps_the_dead_entries(server_dsn: str, tmp_path: Path) -> None:
    done = bench(
        server_dsn,
        *("held-snapshot", "--rows", "2000", "--capacity", "100", "--duration", "1", "--workers", "1"),
        *("--json", str(tmp_path / "b.json")),
    )

    assert done.returncode == 0, done.stderr
    held = values_of(tmp_path / "b.json", "held-snapshot")["snapshot held"]
    assert held["dead_tuples"] == pytest.approx(2, abs=0.2)  # one by the claim, one by the end; none vacuumed away
    assert held["ratio"] > 0


@pytest.mark.slow
def test_enqueue_is_measured_as_its_caller_sees_it(server_dsn: str, tmp_path: Path) -> None:
    done = bench(
        server_dsn,
        *("enqueue", "--jobs", "1000", "--capacity", "3000", "--duration", "1", "--workers", "1", "--rounds", "1"),
        *("--handler", "sleep:5", "--json", str(tmp_path / "b.json")),
    )

    assert done.returncode == 0, done.stdout + done.stderr
    values = values_of(tmp_path / "b.json", "enqueue")
    assert values["one by one"]["rate"] > 0
    assert values["in bulk"]["rate"] > values["one by one"]["rate"]
    assert values["full drain"]["call_ratio"] > 0
    assert values["idle queue"]["call_p99"] > 0


@pytest.mark.slow
def test_console_costs_a_known_share(server_dsn: str, tmp_path: Path) -> None:
    done = bench(
        server_dsn,
        *("console", "--jobs", "200", "--rows", "500", "--workers", "1", "--handler", "sleep:5"),
        *("--json", str(tmp_path / "b.json")),
    )

    assert done.returncode == 0, done.stderr
    looked_at = values_of(tmp_path / "b.json", "console")["one console"]
    assert looked_at["samples"] >= 1
    assert looked_at["tick_p50"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_benchmark_leaves_no_database_and_no_worker(server_dsn: str, number: signal.Signals) -> None:
    running = subprocess.Popen(
        [*PROGRAM, "--dsn", server_dsn, "bench", "--jobs", "3000", "--workers", "1", "--handler", "sleep:50"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        prefix = f"pgq_bench_{running.pid}_"
        eventually(lambda: _working(server_dsn, prefix), timeout=60)

        children = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(number)
        running.communicate(timeout=60)
    finally:
        running.kill()

    assert running.returncode != 0
    assert not [name for name in databases(server_dsn) if name.startswith(prefix)]
    assert children
    assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
def test_database_of_a_killed_benchmark_is_dropped_by_the_next_one(server_dsn: str) -> None:
    nobody = 2**22 + 7  # no process has such a number
    with psycopg.connect(server_dsn, autocommit=True) as conn:
        conn.execute(f"CREATE DATABASE pgq_bench_{nobody}_1")
        conn.execute(f"CREATE DATABASE pgq_bench_{os.getpid()}_99")
    server = BenchServer(server_dsn)
    try:
        server.drop_leftovers()
        assert databases(server_dsn) == {f"pgq_bench_{os.getpid()}_99"}
    finally:
        server.close()
        with psycopg.connect(server_dsn, autocommit=True) as conn:
            conn.execute(f"DROP DATABASE pgq_bench_{os.getpid()}_99")


def _working(server_dsn: str, prefix: str) -> bool:
    for name in databases(server_dsn):
        if name.startswith(prefix):
            statement = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND application_name LIKE 'pgq%%'"
            with psycopg.connect(server_dsn) as conn:
                row = conn.execute(statement, (name,)).fetchone()
            if row and row[0] > 3:
                return True
    return False


@pytest.mark.slow
def test_dsn_of_the_environment_is_left_alone(server_dsn: str) -> None:
    """Somebody's production database is not where a benchmark goes by itself."""
    done = subprocess.run(
        [*PROGRAM, "bench", "--jobs", "100", "--workers", "1", "--rounds", "1"],
        env=os.environ | {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere"},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "fsync on" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("nonsense",), 2, "no scenario is called nonsense"),
        (("--handler", "nonsense"), 2, "write noop, thread or sleep"),
        (("--read-only",), 4, "read-only"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_made(
    server_dsn: str, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = bench(server_dsn, *arguments)

    assert done.returncode == code
    assert words in done.stderr


def test_server_that_is_not_there_is_one_line() -> None:
    done = bench("postgresql://nobody@127.0.0.1:1/nowhere")

    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_worker_that_dies_ends_the_measurement_with_its_last_words(server_dsn: str) -> None:
    server = BenchServer(server_dsn)
    try:
        with server.fresh_database() as database, recording(1) as memory:
            broken = WorkerFleet(database, memory, workers=1, concurrency=-1)
            with pytest.raises(BenchFailed, match=r"worker 0 ended with code 2.*concurrency"), broken:
                pass
    finally:
        server.close()


@pytest.mark.slow
def test_figures_do_not_count_when_the_database_shows_other_runs(server_dsn: str) -> None:
    server = BenchServer(server_dsn)
    try:
        with server.fresh_database() as database, recording(1) as memory:
            trial = Trial(database, memory, WorkerFleet(database, memory, workers=1, concurrency=None), None)
            with pytest.raises(BenchFailed, match="shows 0 runs of 0"):
                checked_runs(trial, 5)
    finally:
        server.close()


@pytest.mark.slow
def test_every_scenario_can_be_named(server_dsn: str) -> None:
    assert set(SCENARIOS) == set(ScenarioName)
    bare: Any = type("Bare", (), {"options": BenchOptions()})()
    for scenario in SCENARIOS.values():
        assert scenario(bare).about
        assert scenario(bare).variants
