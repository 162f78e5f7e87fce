"""A transaction that somebody has left open holds up the one worker whose row or job it has locked, and no other."""

from __future__ import annotations

import os
import signal

import psycopg
import pytest

from tests.supervisor.support import PATIENCE, Host, pool
from tests.support.waiting import eventually

pytestmark = pytest.mark.system


def test_the_siblings_of_a_worker_that_died_over_a_locked_job_live_on(host: Host, stranger: psycopg.Connection) -> None:
    """Their keeper has one connection, and must not wait with it for a stranger."""
    host.supervise(pool(wanted=3, concurrency=1))
    first = {row["id"] for row in host.until_running(3)}
    (job_id,) = host.enqueue("sleep", {"seconds": 600})
    host.until_started(1)
    stranger.execute("SELECT cancel(%s)", (job_id,))
    (victim,) = host.rows("SELECT w.id, w.pid FROM jobs j JOIN workers w ON w.id = j.locked_by")
    os.kill(victim["pid"], signal.SIGKILL)

    eventually(lambda: host.rows("SELECT id FROM workers WHERE state = 'crashed'"), timeout=PATIENCE)
    now = {row["id"] for row in host.until_running(3)}
    assert now > first - {victim["id"]}
    (quick,) = host.enqueue("quick", {})
    eventually(lambda: host.rows("SELECT id FROM job_runs WHERE job_id = %s AND success", quick), timeout=PATIENCE)


@pytest.mark.parametrize("table", ["supervisors", "worker_pools", "leases"])
def test_pools_are_kept_at_their_number_over_locked_rows(host: Host, stranger: psycopg.Connection, table: str) -> None:
    host.supervise(pool("web", wanted=1, concurrency=1), pool("mail", wanted=1, concurrency=1))
    first = {row["id"] for row in host.until_running(2)}
    stranger.execute(f"SELECT FROM {table} FOR UPDATE")

    for row in host.until_running(2):
        os.kill(row["pid"], signal.SIGKILL)
    eventually(lambda: len({row["id"] for row in host.workers()} - first) == 2, timeout=PATIENCE)
    (quick,) = host.enqueue("quick", {})
    eventually(lambda: host.rows("SELECT id FROM job_runs WHERE job_id = %s AND success", quick), timeout=PATIENCE)


def test_a_locked_row_of_a_worker_keeps_no_beat_from_its_siblings(host: Host, stranger: psycopg.Connection) -> None:
    host.supervise(pool(wanted=2))
    held, free = host.until_running(2)
    stranger.execute("SELECT FROM workers WHERE id = %s FOR UPDATE", (held["id"],))

    beats = "SELECT heartbeat_at FROM workers WHERE id = %s"
    seen = {row["heartbeat_at"] for row in host.rows(beats, free["id"])}
    for _ in range(4):
        eventually(lambda: host.rows(beats, free["id"])[0]["heartbeat_at"] not in seen, timeout=PATIENCE)
        seen.add(host.rows(beats, free["id"])[0]["heartbeat_at"])
    (row,) = host.rows(beats, held["id"])
    assert row["heartbeat_at"] < max(seen), "it is not beaten, which its own watchdog hears of"


def test_a_job_that_kills_its_worker_is_charged_while_nobody_can_write_dead_letters(
    host: Host, stranger: psycopg.Connection
) -> None:
    """It would have run again and again, unspent, while its workers were taken for lost one after the other."""
    host.supervise(pool(wanted=2, concurrency=1))
    first = {row["id"] for row in host.until_running(2)}
    stranger.execute("LOCK TABLE dead_letter_jobs")
    (killer,) = host.enqueue("die", {}, max_attempts=1)

    eventually(lambda: {row["id"] for row in host.workers("running")} - first, timeout=PATIENCE)
    (quick,) = host.enqueue("quick", {})
    eventually(lambda: host.rows("SELECT id FROM job_runs WHERE job_id = %s AND success", quick), timeout=PATIENCE)
    assert [row["attempts"] for row in host.rows("SELECT attempts FROM jobs WHERE id = %s", killer)] == [1]
    stranger.rollback()

    (letter,) = eventually(lambda: host.rows("SELECT * FROM dead_letter_jobs"), timeout=PATIENCE)
    assert (letter["original_job_id"], letter["attempts"]) == (killer, 1)
    assert "SIGKILL" in letter["last_error"]
    assert host.rows("SELECT id FROM workers WHERE state = 'lost'") == []
    assert len(host.rows("SELECT id FROM workers WHERE state = 'crashed'")) == 1
