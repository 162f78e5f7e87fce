"""Workers and supervisors that die in the middle of everything."""

from __future__ import annotations

import signal
import time

import pytest

from tests.support.waiting import eventually
from tests.torture import form
from tests.torture.arena import Arena
from tests.torture.faults import repeatedly
from tests.torture.jobs import CRASHES, DEATHS

pytestmark = [pytest.mark.torture, pytest.mark.system]

NAP = 0.1


def test_t01_workers_killed_every_two_seconds_lose_nothing_and_are_back(arena: Arena) -> None:
    jobs, seconds = form.count(10_000, 3_000), form.seconds(60, 12)
    fleet = arena.fleet(8, 2).start()
    arena.enqueue("nap", {"seconds": NAP}, count=jobs // 4, max_attempts=50)
    begun = time.time()
    undisturbed = (arena.until_done(300) - begun) * 4
    arena.enqueue("nap", {"seconds": NAP}, count=jobs, max_attempts=50)
    begun = time.time()
    gaps: list[float] = []

    def kill() -> bool:
        killed = fleet.signalled(signal.SIGKILL)
        if killed is None:
            return False
        gaps.append(fleet.until_replaced(killed))
        return True

    with repeatedly(2.0, kill) as kills:
        while time.time() < begun + seconds and arena.database.all("SELECT FROM jobs LIMIT 1"):
            time.sleep(0.1)
    ratio = (arena.until_done(300) - begun) / undisturbed

    arena.judge(
        "T01",
        f"{jobs} jobs, 8 workers",
        f"{kills.count} x SIGKILL",
        drain_ratio=ratio,
        slot_back_after_s=max(gaps),
    )
    assert ratio <= 2
    assert max(gaps) <= form.bound(5)
    assert arena.database.all("SELECT FROM dead_letter_jobs") == []


def test_t13_killed_supervisors_leave_no_orphans_and_never_too_many_workers(arena: Arena) -> None:
    rounds = form.count(20, 2)
    fleet = arena.fleet(8, 2)
    arena.enqueue("nap", {"seconds": NAP}, count=rounds * 500, max_attempts=50)
    most = 0
    for _ in range(rounds):
        supervisor = fleet.supervise()
        fleet.until_full()
        supervisor.process.kill()
        supervisor.wait(10)
        time.sleep(5)
    fleet.start()
    deadline = time.monotonic() + form.seconds(30, 5)
    while time.monotonic() < deadline:
        most = max(most, len(fleet.runner_processes()))
        time.sleep(0.2)
    arena.until_done(300)

    arena.judge("T13", f"{rounds * 500} jobs, 8 workers", f"{rounds} x SIGKILL of the supervisor", most_workers=most)
    assert most <= 8


@pytest.mark.parametrize("concurrency", [1, 4])
def test_poison_ends_in_the_dead_letters_with_its_signal_and_harms_no_other(arena: Arena, concurrency: int) -> None:
    good = form.count(1000, 300)
    fleet = arena.fleet(4, concurrency).start()
    poison = {}
    for how in CRASHES:
        arena.enqueue("nap", {"seconds": 0.05}, count=good // len(CRASHES))
        poison[how] = arena.enqueue("crash", {"how": how}, max_attempts=3)[0]

    arena.until_done(60)

    letters = {row["original_job_id"]: row for row in arena.database.all("SELECT * FROM dead_letter_jobs")}
    arena.judge(f"Poison at concurrency {concurrency}", f"{good} good jobs", f"{len(CRASHES)} kinds of poison")
    assert sorted(letters) == sorted(poison.values())
    assert {how: letters[job_id]["reason"] for how, job_id in poison.items()} == dict.fromkeys(CRASHES, "crash_loop")
    for how, job_id in poison.items():
        assert DEATHS[how] in letters[job_id]["last_error"], how
    assert fleet.until_full() < 30


def test_suspended_workers_wake_up_fenced_and_change_nothing(arena: Arena) -> None:
    jobs = form.count(4000, 1500)
    fleet = arena.fleet(6, 2, stale_limit=2.0, heartbeat=0.4).start()
    arena.enqueue("nap", {"seconds": NAP}, count=jobs, max_attempts=50)
    arena.until_finished(50)

    with repeatedly(2.0, lambda: fleet.signal_one(signal.SIGSTOP)) as stops:
        time.sleep(form.seconds(60, 8))
    suspended = [process for process in fleet.runner_processes() if process.status() == "stopped"]
    eventually(lambda: len(arena.database.all("SELECT FROM workers WHERE state = 'lost'")) >= len(suspended), 60)
    for process in suspended:
        process.resume()
    fleet.until_full()
    arena.until_done(300)

    lost = arena.database.value("SELECT count(*) FROM job_runs WHERE outcome = 'lost'")
    arena.judge("Suspended workers", f"{jobs} jobs, 6 workers", f"{stops.count} x SIGSTOP", lost_runs=lost)
    assert stops.count >= 1
    assert arena.database.all("SELECT FROM dead_letter_jobs") == []
