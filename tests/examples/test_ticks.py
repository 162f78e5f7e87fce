"""A crontab and a schedule of pg_cron enqueue one job per tick, on however many hosts they are installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

TICKS = Path(__file__).parents[2] / "examples" / "ticks"


def command_of_crontab() -> str:
    """As cron hands it to the shell: five fields cut off, an escaped % unescaped."""
    lines = (TICKS / "crontab").read_text(encoding="utf-8").splitlines()
    (entry,) = [line for line in lines if line and not line.startswith("#") and "=postgresql" not in line]
    command = entry.split(None, 5)[5]
    assert not re.search(r"(?<!\\)%", command), "cron would end the command at a bare %"
    return command.replace(r"\%", "%")


def run_tick(dsn: str, directory: Path, minute: str) -> str:
    """At that minute: the shell finds a `date` of ours, and the program beside this Python."""
    date = directory / "date"
    date.write_text(f'#!/bin/sh\n[ "$*" = "-u +%Y-%m-%dT%H:%M" ] && echo {minute}\n')
    program = directory / "pgq-core"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pgq_core.cli "$@"\n')
    for file in (date, program):
        file.chmod(0o755)
    env = {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}", "DATABASE_URL": dsn}
    answer = subprocess.run(
        ["/bin/sh", "-c", command_of_crontab()], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    return answer.stdout.strip()


@pytest.mark.system
def test_a_crontab_on_two_hosts_enqueues_once_per_tick(dsn: str, tmp_path: Path) -> None:
    first, second = (run_tick(dsn, tmp_path, "2026-01-01T03:00") for _ in range(2))
    next_day = run_tick(dsn, tmp_path, "2026-01-02T03:00")

    assert first == second != next_day
    with psycopg.connect(dsn) as conn:
        rows = conn.execute("SELECT job_type, idempotency_key FROM jobs ORDER BY id").fetchall()
    assert rows == [
        ("nightly_report", "nightly-report-2026-01-01T03:00"),
        ("nightly_report", "nightly-report-2026-01-02T03:00"),
    ]


def test_a_schedule_of_pg_cron_that_exists_twice_enqueues_once_per_tick(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        # What the extension's function does with its arguments: it keeps them, and later runs just that command.
        conn.execute("CREATE SCHEMA cron")
        conn.execute("CREATE TABLE cron.job (name text, schedule text, command text)")
        conn.execute(
            "CREATE FUNCTION cron.schedule(text, text, text) RETURNS bigint LANGUAGE sql AS "
            "'INSERT INTO cron.job VALUES ($1, $2, $3); SELECT 1::bigint'"
        )
        conn.execute((TICKS / "pg_cron.sql").read_bytes())
        ((command,),) = conn.execute("SELECT command FROM cron.job").fetchall()

        ids = [conn.execute(command).fetchall() for _ in range(2)]  # in one transaction now() stands still

        assert ids[0] == ids[1]
        rows = conn.execute("SELECT job_type, payload -> 'data', idempotency_key FROM jobs").fetchall()
    ((job_type, data, key),) = rows
    assert (job_type, data) == ("nightly_report", {"days": 1})
    assert re.fullmatch(r"nightly-report-\d{4}-\d\d-\d\dT\d\d:\d\d", key)
