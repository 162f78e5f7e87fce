"""Histories of a pool, replayed with the time passed in."""

from __future__ import annotations

from random import Random

import pytest

from pgq_core.worker.backoff import RestartBackoff
from pgq_core.worker.exits import ExitKind, RunnerExit
from pgq_tui.supervisor.pool import Plan, Pool


class AlwaysTheCeiling(Random):
    """So that a history can name its times."""

    def uniform(self, a: float, b: float) -> float:
        return max(a, b)


def a_pool() -> Pool:
    return Pool(lambda: RestartBackoff(cap=30.0, healthy_after=10.0, crash_loop_after=3, random=AlwaysTheCeiling()))


def crash(reason: str = "exit code 1", *last_output: str) -> RunnerExit:
    return RunnerExit(ExitKind.CRASHED, 1, None, reason, last_output, lived=0.0)


def ready_pool(*started_at: float) -> Pool:
    """Workers w0, w1, ... that became ready when they were started."""
    pool = a_pool()
    for number, at in enumerate(started_at):
        pool.started(f"w{number}", at)
        pool.became_ready(f"w{number}", at)
    return pool


# (what is there, wanted, foreign, busy) -> plan
STANDING = {
    "an empty pool starts all": ((), 3, 0, {}, Plan(start=3)),
    "a full pool does nothing": ((0, 0), 2, 0, {}, Plan()),
    "one more": ((0, 0), 3, 0, {}, Plan(start=1)),
    "orphans of another supervisor count": ((), 3, 2, {}, Plan(start=1)),
    "more orphans than wanted: nothing to start": ((), 1, 4, {}, Plan()),
    "ours are not drained for the sake of orphans": ((0,), 1, 2, {}, Plan()),
    "of equally idle ones the youngest goes": ((0, 5, 3), 2, 0, {}, Plan(drain=("w1",))),
    "an idle old one goes before a busy young one": ((0, 5, 3), 2, 0, {"w1": 1, "w2": 2}, Plan(drain=("w0",))),
    "down to nothing": ((0, 1), 0, 0, {}, Plan(drain=("w1", "w0"))),
}


@pytest.mark.parametrize("case", STANDING.values(), ids=STANDING)
def test_plan_follows_from_wanted_and_who_is_there(
    case: tuple[tuple[float, ...], int, int, dict[str, int], Plan],
) -> None:
    started_at, wanted, foreign, busy, expected = case

    plan = ready_pool(*started_at).plan(10.0, wanted=wanted, foreign=foreign, busy=busy)

    assert plan == expected


def test_a_leaving_worker_frees_its_seat_at_once() -> None:
    pool = ready_pool(0, 1)
    pool.asked_to_leave("w1")

    assert pool.plan(2.0, wanted=1) == Plan()
    assert pool.plan(2.0, wanted=2) == Plan(start=1)


def test_a_worker_that_was_asked_to_leave_is_no_failure() -> None:
    pool = ready_pool(0)
    pool.asked_to_leave("w0")

    assert not pool.exited("w0", 5.0, crash("signal SIGKILL"))
    assert pool.plan(5.0, wanted=1) == Plan(start=1)
    assert pool.restarts == 0


def test_a_death_leaves_the_seat_empty_for_the_pause_and_then_fills_it() -> None:
    pool = ready_pool(0, 0)

    assert pool.exited("w1", 100.0, crash("signal SIGSEGV"))

    assert pool.plan(100.0, wanted=2) == Plan(look_again_at=100.5)
    assert pool.plan(100.5, wanted=2) == Plan(start=1)
    pool.started("w2", 100.5)
    assert pool.restarts == 1


def test_one_crashing_seat_does_not_hold_up_the_others() -> None:
    pool = a_pool()
    pool.started("w0", 0.0)
    pool.exited("w0", 0.1, crash())

    assert pool.plan(0.1, wanted=3).start == 2


def test_pauses_of_a_worker_that_dies_at_start_grow_to_the_cap() -> None:
    pool, now, pauses = a_pool(), 0.0, []
    for number in range(12):
        pool.started(f"w{number}", now)
        pool.exited(f"w{number}", now, crash())
        look_again_at = pool.plan(now, wanted=1).look_again_at
        assert look_again_at is not None
        pauses.append(look_again_at - now)
        now = look_again_at

    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 30]


def test_pauses_stay_short_when_jobs_kill_workers_that_had_been_ready() -> None:
    pool, now, pauses = a_pool(), 0.0, []
    for number in range(8):
        pool.started(f"w{number}", now)
        pool.became_ready(f"w{number}", now)
        pool.exited(f"w{number}", now + 1, crash("signal SIGKILL"))
        look_again_at = pool.plan(now + 1, wanted=1).look_again_at
        assert look_again_at is not None
        pauses.append(look_again_at - now - 1)
        now = look_again_at

    assert pauses == [0.5, 1, 2, 3, 3, 3, 3, 3]


def test_a_healthy_period_forgets_the_deaths_before() -> None:
    pool = a_pool()
    for number in range(5):
        pool.started(f"w{number}", number * 100.0)
        pool.exited(f"w{number}", number * 100.0, crash())
    pool.started("lives", 1000.0)
    pool.became_ready("lives", 1001.0)

    assert pool.health(1002.0).state == "crash_loop"
    assert pool.health(1011.0).state == "ok"
    pool.exited("lives", 1011.0, crash("signal SIGKILL"))
    assert pool.plan(1011.0, wanted=1).look_again_at == 1011.5


def test_a_crash_loop_says_why_and_when_it_tries_again() -> None:
    pool, now = a_pool(), 0.0
    states = []
    for number in range(3):
        pool.started(f"w{number}", now)
        pool.exited(
            f"w{number}", now, crash("exit code 1", "Traceback", "ModuleNotFoundError: No module named 'shop'", "")
        )
        states.append(pool.health(now).state)
        now += 10

    health = pool.health(20.5)

    assert states == ["ok", "ok", "crash_loop"]
    assert health.detail == "3 times in a row: exit code 1 (ModuleNotFoundError: No module named 'shop')"
    assert health.retry_at == 22.0
    assert health.restarts == 2


@pytest.mark.parametrize(
    ("last_line", "detail"),
    [
        ('{"job_id":9,"event":"job_dead","level":"error","error":"KeyError: 1"}', "exit code 1 (loading)"),
        ('{"event":"worker_ready","level":"info"}', "exit code 1 (loading)"),
        ('{"event":"loop_failed","level":"error","error":"no memory"}', "exit code 1 (loop_failed: no memory)"),
        ('["a", 1]', 'exit code 1 (["a", 1])'),
        ("[" * 100_000, f"exit code 1 ({'[' * 200})"),
    ],
)
def test_log_records_that_say_nothing_about_a_death_are_left_out_of_its_words(last_line: str, detail: str) -> None:
    pool = a_pool()
    for number in range(3):
        pool.started(f"w{number}", number)
        pool.exited(f"w{number}", number, crash("exit code 1", "loading", last_line))

    assert pool.health(3).detail == f"3 times in a row: {detail}"


def test_a_seat_given_up_during_its_pause_stays_given_up() -> None:
    pool = ready_pool(0, 0)
    pool.exited("w1", 20.0, crash())

    assert pool.plan(20.1, wanted=1) == Plan()
    assert pool.plan(60.0, wanted=1) == Plan()


def test_a_program_that_cannot_be_started_backs_off_like_one_that_dies() -> None:
    pool = a_pool()
    pool.failed_to_start(0.0, "no such directory")
    pool.failed_to_start(0.0, "no such directory")

    assert pool.plan(0.0, wanted=2) == Plan(look_again_at=0.5)
    pool.failed_to_start(0.5, "no such directory")
    pool.failed_to_start(0.5, "no such directory")
    assert pool.plan(0.5, wanted=2) == Plan(look_again_at=1.5)


@pytest.mark.parametrize("kind", [ExitKind.STOPPED, ExitKind.REPLACE])
def test_a_worker_that_ended_without_blame_is_replaced_at_once(kind: ExitKind) -> None:
    pool = ready_pool(0)

    assert not pool.exited("w0", 1.0, RunnerExit(kind, 0, None, "asked to", (), lived=1.0))
    assert pool.plan(1.0, wanted=1) == Plan(start=1)


def test_a_start_that_hangs_before_it_fails_is_not_healthy_for_hanging_long() -> None:
    pool, now = a_pool(), 0.0
    for number in range(3):
        pool.started(f"w{number}", now)
        pool.exited(f"w{number}", now + 60, crash("the database refuses the password"))
        now += 100

    assert pool.health(now).state == "crash_loop"


def test_an_operator_can_end_the_waiting() -> None:
    pool = a_pool()
    pool.started("w0", 0.0)
    pool.exited("w0", 0.0, crash())

    pool.retry_now()

    assert pool.plan(0.0, wanted=1) == Plan(start=1)
    pool.started("w1", 0.0)
    assert not pool.vacancies


def test_real_pauses_are_jittered_and_never_zero() -> None:
    pauses = []
    for _ in range(50):
        pool = Pool()
        pool.started("w", 0.0)
        pool.exited("w", 0.0, crash())
        pauses.append(pool.vacancies[0].retry_at)

    assert all(0.25 <= pause <= 0.5 for pause in pauses)
    assert len(set(pauses)) == len(pauses)


@pytest.mark.parametrize("seed", range(30))
def test_no_history_ends_above_or_below_the_wanted_number(seed: int) -> None:
    """Random deaths, scalings and orphans: after each plan is carried out, staying + waiting + orphans = wanted."""
    random = Random(seed)
    pool, now, number = Pool(lambda: RestartBackoff(random=random)), 0.0, 0
    for _ in range(300):
        now += random.uniform(0, 3)
        wanted, foreign = random.randint(0, 6), random.choice((0, 0, 0, 2))
        for worker_id in random.sample(sorted(pool.members), k=len(pool.members) // 2):
            match random.choice(("ready", "dies", "lives")):
                case "ready":
                    pool.became_ready(worker_id, now)
                case "dies":
                    pool.exited(worker_id, now, crash())
        plan = pool.plan(now, wanted=wanted, foreign=foreign)
        for worker_id in plan.drain:
            pool.asked_to_leave(worker_id)
        for _ in range(plan.start):
            number += 1
            pool.started(f"w{number}", now)

        staying = sum(not member.is_leaving for member in pool.members.values())
        assert staying <= wanted
        assert staying + len(pool.vacancies) + foreign >= wanted
        assert plan.start == 0 or staying + foreign <= wanted
