"""A supervisor with real workers on a real database."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from pgq_tui.supervisor import SupervisorNotStarted
from tests.supervisor.support import HOST, PATIENCE, Host, all_gone, pool
from tests.support.waiting import eventually

pytestmark = pytest.mark.system


def test_a_pool_is_filled_to_its_wanted_number_and_works(host: Host) -> None:
    supervisor = host.supervise(pool(wanted=2))

    workers = host.until_running(2)
    host.enqueue("quick", {}, count=20)

    host.until_outcomes(succeeded=20)
    assert {(row["host"], row["pool"], row["supervisor_id"]) for row in workers} == {
        (HOST, "web", supervisor.info.supervisor_id)
    }
    assert (host.pool_row()["wanted"], host.pool_row()["state"], host.pool_row()["restarts"]) == (2, "ok", 0)
    lease = host.rows("SELECT host, pid, pools, stopping FROM supervisors")
    assert lease == [{"host": HOST, "pid": supervisor.info.pid, "pools": ["web"], "stopping": False}]


def test_scaling_up_and_down_follows_the_number_in_the_database(host: Host) -> None:
    host.supervise(pool(wanted=1))
    first = host.until_running(1)[0]["id"]

    host.scale(3)
    grown = host.until_running(3)
    host.scale(1)
    left = host.until_running(1)

    assert first in {row["id"] for row in grown}
    # All were idle, so the youngest two went.
    assert [row["id"] for row in left] == [first]
    ended = "SELECT state FROM workers WHERE stopped_at IS NOT NULL"
    eventually(lambda: [row["state"] for row in host.rows(ended)] == ["stopped", "stopped"])


def test_scaling_works_without_notification_too(host: Host) -> None:
    host.supervise(pool(wanted=0))

    host.rows("UPDATE worker_pools SET wanted = 1")

    host.until_running(1)


def test_scaling_down_spares_the_busy_worker_and_loses_no_attempt(host: Host) -> None:
    host.supervise(pool(wanted=1, concurrency=1))
    host.until_running(1)
    host.enqueue("sleep", {"seconds": 4})
    host.until_started(1)
    busy = host.rows("SELECT locked_by FROM jobs")[0]["locked_by"]
    host.scale(2)
    host.until_running(2)

    host.scale(1)

    assert [row["id"] for row in host.until_running(1)] == [busy]
    host.until_outcomes(succeeded=1)


def test_limits_of_the_host_hold_whatever_the_table_says(host: Host) -> None:
    host.rows("ALTER TABLE worker_pools DROP CONSTRAINT pool_numbers")
    host.supervise(pool(wanted=1, maximum=2))
    host.until_running(1)

    host.scale(50)

    host.until_running(2)
    assert len(host.workers("starting", "running", "draining")) == 2


@pytest.mark.slow
def test_an_operators_number_survives_a_new_supervisor(host: Host) -> None:
    first = host.supervise(pool(wanted=1))
    host.until_running(1)
    host.scale(2)
    host.until_running(2)
    first.ask_to_stop()
    assert host.until_stopped(first) == 0

    host.supervise(pool(wanted=1))

    host.until_running(2)


def test_a_killed_worker_is_replaced_and_the_others_go_on(host: Host) -> None:
    host.supervise(pool(wanted=3))
    before = host.until_running(3)

    os.kill(before[0]["pid"], signal.SIGKILL)
    eventually(lambda: before[0]["id"] not in {row["id"] for row in host.workers()}, timeout=PATIENCE)
    after = host.until_running(3)

    assert {row["id"] for row in before[1:]} < {row["id"] for row in after}
    eventually(lambda: host.pool_row()["restarts"] == 1, timeout=PATIENCE)
    ended = host.rows("SELECT state, exit_signal FROM workers WHERE id = %s", before[0]["id"])
    assert ended == [{"state": "crashed", "exit_signal": "SIGKILL"}]
    assert host.pool_row()["state"] == "ok"


def test_a_job_that_kills_its_worker_ends_dead_and_the_pool_is_back(host: Host) -> None:
    host.supervise(pool(wanted=2))
    host.until_running(2)

    host.enqueue("die", {}, max_attempts=1)

    letter = eventually(lambda: host.rows("SELECT reason, last_error FROM dead_letter_jobs"), timeout=PATIENCE)[0]
    assert letter["reason"] == "crash_loop"
    assert "SIGKILL" in letter["last_error"]
    host.until_running(2)


@pytest.mark.slow
def test_a_crash_loop_is_said_with_its_reason_and_heals_by_itself(host: Host, tmp_path: Path) -> None:
    app = tmp_path / "late_app.py"
    app.write_text("raise SystemError('the disk is not mounted yet')\n")
    host.supervise(pool(app=str(app), wanted=1), pool("other", wanted=1))

    row = eventually(
        lambda: next((row for row in [host.pool_row()] if row["state"] == "crash_loop"), None), timeout=PATIENCE
    )
    assert "the disk is not mounted yet" in row["state_detail"]
    assert row["state_detail"].startswith("3 times in a row")
    assert row["restarts"] >= 2
    assert host.pool_row("other")["state"] == "ok"
    assert [worker["pool"] for worker in host.workers()] == ["other"]

    app.write_text("from pgq_core.handlers import handler\n@handler('x')\ndef x(data): pass\n")
    eventually(lambda: len(host.workers()) == 2, timeout=PATIENCE)
    eventually(lambda: host.pool_row()["state"] == "ok", timeout=PATIENCE)


def test_a_pool_given_up_in_the_middle_of_its_pause_stays_given_up(host: Host) -> None:
    host.supervise(pool(app="no_such_module_anywhere", wanted=1))
    eventually(lambda: host.pool_row()["state"] == "crash_loop", timeout=PATIENCE)

    host.scale(0)

    eventually(lambda: host.pool_row()["state"] == "ok", timeout=PATIENCE)
    started = host.rows("SELECT count(*) AS n FROM workers")
    host.until_gone()
    assert host.rows("SELECT count(*) AS n FROM workers") == started


@pytest.mark.slow
def test_a_directory_that_is_missing_is_a_crash_loop_too(host: Host, tmp_path: Path) -> None:
    host.supervise(pool(wanted=1, cwd=tmp_path / "missing"))

    eventually(lambda: host.pool_row()["state"] == "crash_loop", timeout=PATIENCE)

    assert "missing" in host.pool_row()["state_detail"]


def test_a_pool_that_the_host_does_not_define_is_refused(host: Host) -> None:
    host.supervise(pool(wanted=1))
    host.until_running(1)

    host.rows("INSERT INTO worker_pools (host, name, queues, wanted) VALUES (%s, 'evil', '{default}', 3)", HOST)

    row = eventually(lambda: host.rows("SELECT * FROM worker_pools WHERE state = 'refused'"), timeout=PATIENCE)[0]
    assert row["name"] == "evil"
    assert "does not define a pool of this name" in row["state_detail"]
    assert [worker["pool"] for worker in host.workers("starting", "running")] == ["web"]


@pytest.mark.slow
def test_a_worker_that_an_operator_restarts_is_replaced(host: Host) -> None:
    host.supervise(pool(wanted=1))
    first = host.until_running(1)[0]

    host.rows("UPDATE workers SET wanted = 'restart' WHERE id = %s", first["id"])
    host.rows("SELECT pg_notify(wake_channel(), 'workers')")
    eventually(lambda: first["id"] not in {row["id"] for row in host.workers()}, timeout=PATIENCE)

    second = host.until_running(1)[0]
    assert second["id"] != first["id"]
    assert (host.pool_row()["restarts"], host.pool_row()["wanted"]) == (0, 1)


@pytest.mark.slow
def test_a_worker_that_somebody_terminates_by_hand_is_replaced_without_blame(host: Host) -> None:
    host.supervise(pool(wanted=1))
    first = host.until_running(1)[0]

    os.kill(first["pid"], signal.SIGTERM)
    eventually(lambda: first["id"] not in {row["id"] for row in host.workers()}, timeout=PATIENCE)

    host.until_running(1)
    assert (host.pool_row()["restarts"], host.pool_row()["wanted"], host.pool_row()["state"]) == (0, 1, "ok")


@pytest.mark.parametrize("wish", ["drain", pytest.param("stop", marks=pytest.mark.slow)])
def test_a_worker_that_an_operator_sends_away_is_not_replaced(host: Host, wish: str) -> None:
    host.supervise(pool(wanted=2))
    sent_away, left = host.until_running(2)

    host.rows("UPDATE workers SET wanted = %s WHERE id = %s", wish, sent_away["id"])
    host.rows("SELECT pg_notify(wake_channel(), 'workers')")

    eventually(lambda: host.pool_row()["wanted"] == 1, timeout=PATIENCE)
    assert [row["id"] for row in host.until_running(1)] == [left["id"]]
    ended = eventually(
        lambda: host.rows("SELECT state FROM workers WHERE id = %s AND stopped_at IS NOT NULL", sent_away["id"]),
        timeout=PATIENCE,
    )
    assert ended == [{"state": "stopped"}]


@pytest.mark.slow
def test_a_pool_at_its_minimum_replaces_a_worker_that_was_sent_away(host: Host) -> None:
    host.supervise(pool(wanted=1, minimum=1))
    first = host.until_running(1)[0]["id"]

    host.rows("UPDATE workers SET wanted = 'drain'")

    eventually(lambda: first not in {row["id"] for row in host.workers()}, timeout=PATIENCE)
    host.until_running(1)
    assert host.pool_row()["wanted"] == 1


def test_environment_directory_and_output_are_those_of_the_hosts_file(host: Host, tmp_path: Path) -> None:
    host.supervise(pool(wanted=1, env={"SIGNATURE": "the file"}, cwd=tmp_path))
    worker = host.until_running(1)[0]

    host.enqueue("print", {"lines": 30})

    host.until_outcomes(succeeded=1)
    last = f"line 29 of the file in {tmp_path}"
    log = host.state_dir / "workers" / f"{worker['id']}.log"
    eventually(lambda: log.exists() and last in log.read_text(), timeout=PATIENCE)
    eventually(lambda: last in (host.workers()[0]["last_output"] or ""), timeout=PATIENCE)
    assert len(host.workers()[0]["last_output"].splitlines()) <= 20


def test_a_flood_of_output_slows_nobody_down_and_fills_nothing(host: Host) -> None:
    supervisor = host.supervise(pool(wanted=1))
    host.until_running(1)

    host.enqueue("print", {"lines": 150_000})

    host.until_outcomes(succeeded=1)
    assert psutil.Process(supervisor.info.pid).memory_info().rss < 100 * 1024 * 1024
    stored = sum(path.stat().st_size for path in (host.state_dir / "workers").iterdir())
    assert stored <= 11 * 1024 * 1024


def test_a_second_supervisor_of_a_host_is_refused(host: Host) -> None:
    first = host.supervise(pool(wanted=1))

    with pytest.raises(SupervisorNotStarted, match=f"{first.info.supervisor_id} is in charge") as refused:
        host.supervise(pool(wanted=1))

    assert refused.value.is_running
    host.until_running(1)


@pytest.mark.slow
def test_another_machine_with_the_same_host_name_is_refused_by_the_database(host: Host, tmp_path: Path) -> None:
    first = host.supervise(pool(wanted=1))
    host.state_dir = tmp_path / "another machine"

    with pytest.raises(SupervisorNotStarted, match=f"{first.info.supervisor_id} is in charge"):
        host.supervise(pool(wanted=1))


def test_a_supervisor_that_lost_its_host_drains_its_workers_and_leaves(host: Host) -> None:
    supervisor = host.supervise(pool(wanted=2))
    pids = [row["pid"] for row in host.until_running(2)]

    host.rows("UPDATE supervisors SET supervisor_id = 'somebody else'")

    assert host.until_stopped(supervisor) == 1
    assert all_gone(pids)
    assert host.rows("SELECT supervisor_id FROM supervisors") == [{"supervisor_id": "somebody else"}]


@pytest.mark.slow
def test_a_lease_that_somebody_deleted_is_taken_again(host: Host) -> None:
    supervisor = host.supervise(pool(wanted=1))
    worker = host.until_running(1)[0]["id"]

    host.rows("DELETE FROM supervisors")

    lease = eventually(lambda: host.rows("SELECT supervisor_id FROM supervisors"), timeout=PATIENCE)
    assert lease == [{"supervisor_id": supervisor.info.supervisor_id}]
    assert host.until_running(1)[0]["id"] == worker


def test_a_supervisor_uses_little_memory_and_no_screen(host: Host) -> None:
    supervisor = host.supervise(pool(wanted=1))
    host.until_running(1)

    process = psutil.Process(supervisor.info.pid)

    # Its own memory: what it shares with other Python processes is not multiplied by it.
    assert process.memory_full_info().uss < 60 * 1024 * 1024
    assert not any("textual" in mapping.path for mapping in process.memory_maps())
