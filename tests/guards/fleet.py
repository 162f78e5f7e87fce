"""Plays about workers, supervisors, leases and pools."""

from __future__ import annotations

from datetime import timedelta

from tests.guards.play import LOCK_LIMIT, Play, run_on
from tests.guards.registry import meets, plays, spared

HALF_MINUTE = timedelta(seconds=30)


@plays("acquire_lease")
def a_duty_belongs_to_one_holder_until_it_expires(play: Play) -> None:
    def take(holder: str, name: str = "duty") -> bool:
        return bool(play.run("acquire_lease", name=name, holder=holder, duration=HALF_MINUTE, loops=None))

    assert take("a")
    assert not take("b")
    assert take("a"), "renewed by its holder"
    play.database.run("UPDATE leases SET expires_at = now() - interval '1 second'")
    assert take("b"), "taken over when it has expired"
    play.database.run("UPDATE leases SET expires_at = now() + interval '3 days'")
    assert take("a"), "taken over when a clock that was stepped wrote it"


@plays("give_up_lease")
def only_its_holder_gives_a_duty_up(play: Play) -> None:
    for name, holder in (("mine", "a"), ("theirs", "b"), ("other", "a")):
        play.run("acquire_lease", name=name, holder=holder, duration=HALF_MINUTE, loops="{}")
    play.run("give_up_lease", name="mine", holder="a")
    play.run("give_up_lease", name="theirs", holder="a")

    assert play.values("SELECT name FROM leases WHERE expires_at < clock_timestamp() OR loops IS NULL") == ["mine"]


@plays("take_host_lease", "beat_for_host", "release_host_lease")
def a_host_has_one_supervisor(play: Play) -> None:
    def take(supervisor_id: str, dead_id: str | None = None) -> bool:
        return bool(
            play.run(
                "take_host_lease",
                host="h",
                supervisor_id=supervisor_id,
                pid=1,
                pools=[],
                version="1",
                stale_limit=HALF_MINUTE,
                dead_id=dead_id,
            )
        )

    def beat(supervisor_id: str, host: str = "h") -> int:
        return play.count("beat_for_host", host=host, supervisor_id=supervisor_id, stopping=True, loops=None)

    play.add("supervisors", host="elsewhere", supervisor_id="a", pid=1)
    assert take("a")
    assert not take("b")
    assert take("a"), "its holder takes it again"
    assert (beat("a"), beat("b")) == (1, 0)
    assert play.values("SELECT host FROM supervisors WHERE stopping") == ["h"]
    assert take("b", dead_id="a"), "its holder is known to be dead"
    play.age("supervisors", "heartbeat_at", 60, "host = 'h'")
    assert take("c"), "its holder is silent"
    play.run("release_host_lease", host="h", supervisor_id="b")
    assert play.values("SELECT supervisor_id FROM supervisors WHERE host = 'h'") == ["c"]
    play.add("supervisors", host="third", supervisor_id="c", pid=1)
    play.run("release_host_lease", host="h", supervisor_id="c")
    assert play.values("SELECT host FROM supervisors ORDER BY host") == ["elsewhere", "third"]


@plays("announce_worker")
def only_a_worker_that_lives_announces_itself(play: Play) -> None:
    play.worker("starter", state="starting")
    play.worker("leaver", state="draining")
    play.worker("gone", state="lost", stopped_at="2026-01-01")
    play.worker("neighbour", state="starting")
    for worker_id in ("starter", "leaver", "gone"):
        play.run("announce_worker", worker_id=worker_id, pid=7, job_types=["t"])

    assert play.values("SELECT id FROM workers WHERE pid = 7 ORDER BY id") == ["leaver", "starter"]
    assert play.values("SELECT state FROM workers ORDER BY id") == ["lost", "draining", "starting", "running"]


def beat_params(*ids: str) -> dict[str, object]:
    none: list[object] = [None] * len(ids)
    zeros = [0] * len(ids)
    return {
        "ids": list(ids),
        "pids": [7] * len(ids),
        "states": ["running"] * len(ids),
        "running": zeros,
        "finished": zeros,
        "failed": zeros,
        "late_writes": zeros,
        "cpu_percents": none,
        "rss_bytes": none,
        "loops": none,
    }


@plays("beat_workers")
def beats_reach_the_living_only_and_tell_the_others(play: Play) -> None:
    play.worker("alive", wanted="drain", state="draining")
    play.worker("lost", state="lost", stopped_at="2026-01-01", heartbeat_at="2026-01-01")
    play.worker("neighbour", heartbeat_at="2026-01-01")
    rows = play.run("beat_workers", **beat_params("alive", "lost", "deleted"))

    told = {row["id"]: (row["wanted"], row["is_ended"], row["is_locked"]) for row in rows}
    assert told == {"alive": ("drain", False, False), "lost": (None, True, False), "deleted": (None, False, False)}
    assert play.values("SELECT id FROM workers WHERE pid = 7") == ["alive"]
    assert play.values("SELECT id FROM workers WHERE heartbeat_at < '2026-02-01' ORDER BY id") == ["lost", "neighbour"]


@plays("beat_workers")
def each_worker_gets_its_own_figures(play: Play) -> None:
    play.worker("a")
    play.worker("b")
    play.run("beat_workers", **{**beat_params("a", "b"), "running": [1, 2]})

    assert play.values("SELECT running FROM workers ORDER BY id") == [1, 2]


spared(
    "beat_workers",
    "WHERE w.id = ANY (%(ids)s::text[])",
    because="the join with the input says the same; this one finds the rows by index",
)


@plays("end_worker")
def an_end_is_written_for_one_worker_and_a_loss_is_not_overwritten(play: Play) -> None:
    play.worker("w")
    play.worker("lost", state="lost", stopped_at="2026-01-01")
    play.worker("neighbour")
    for waiter in ("w", "neighbour"):
        play.add("worker_waits", worker_id=waiter, waiting=True)
    for worker_id in ("w", "lost"):
        play.run(
            "end_worker",
            worker_id=worker_id,
            state="crashed",
            exit_code=None,
            exit_signal="SIGKILL",
            exit_reason="r",
            last_output=None,
            finished=1,
            failed=0,
            late_writes=0,
        )

    assert play.values("SELECT state FROM workers ORDER BY id") == ["lost", "running", "crashed"]
    assert play.values("SELECT worker_id FROM worker_waits") == ["neighbour"]


@plays("register_worker")
def a_worker_gets_the_slot_that_fewest_of_the_living_use(play: Play) -> None:
    for slot in range(15):
        play.worker(f"w{slot}", slot=slot)
    play.worker("gone", slot=15, stopped_at="2026-01-01")
    (row,) = play.run(
        "register_worker",
        worker_id="new",
        host="h",
        pool=None,
        supervisor_id=None,
        queues=["q"],
        concurrency=1,
        version="1",
    )

    assert row["slot"] == 15


@plays("save_outputs")
def each_worker_keeps_its_own_output(play: Play) -> None:
    for worker_id in ("a", "b", "c"):
        play.worker(worker_id)
    play.run("save_outputs", ids=["a", "b"], outputs=["A", "B"])

    assert play.values("SELECT last_output FROM workers ORDER BY id") == ["A", "B", None]


@plays("set_waiting")
def a_wish_that_is_written_already_is_not_written_again(play: Play) -> None:
    assert play.count("set_waiting", worker_id="w", waiting=True) == 1
    assert play.count("set_waiting", worker_id="w", waiting=True) == 0
    assert play.count("set_waiting", worker_id="w", waiting=False) == 1


@plays("set_worker_wanted")
def only_a_living_worker_is_asked(play: Play) -> None:
    play.worker("w")
    play.worker("gone", stopped_at="2026-01-01")
    play.worker("neighbour")
    for worker_id in ("w", "gone"):
        play.run("set_worker_wanted", worker_id=worker_id, wanted="drain")

    assert play.values("SELECT id FROM workers WHERE wanted = 'drain'") == ["w"]


# Pools


def pools(play: Play) -> None:
    for host, name in (("h", "p"), ("h", "q"), ("other", "p")):
        play.add("worker_pools", host=host, name=name, queues=["q"], wanted=3, minimum=1, maximum=5)


def wanted(play: Play) -> list[int]:
    return play.values("SELECT wanted FROM worker_pools ORDER BY host, name")


@plays("set_pool_wanted")
def a_wanted_number_is_set_for_one_pool_within_its_bounds(play: Play) -> None:
    pools(play)
    for number in (4, 9, 0):
        play.run("set_pool_wanted", host="h", pool="p", wanted=number, operator="me")

    assert wanted(play) == [4, 3, 3]


@plays("lower_pool", "report_pool")
def only_the_named_pool_changes(play: Play) -> None:
    pools(play)
    play.run("lower_pool", host="h", name="p", by=1, supervisor_id="s")
    play.run("report_pool", host="h", name="p", state="crash_loop", detail="d", retry_in=None, restarts=1)

    assert wanted(play) == [2, 3, 3]
    assert play.values("SELECT state FROM worker_pools ORDER BY host, name") == ["crash_loop", "ok", "ok"]


@plays("refuse_pools")
def a_host_refuses_only_what_it_does_not_define_and_says_so_once(play: Play) -> None:
    pools(play)
    play.add("worker_pools", host="other", name="z", queues=["q"])

    def refuse() -> list[str]:
        return [row["name"] for row in play.run("refuse_pools", host="h", defined=["p"], detail="d")]

    assert refuse() == ["q"]
    assert refuse() == []
    assert play.values("SELECT state FROM worker_pools ORDER BY host, name") == ["ok", "refused", "ok", "ok"]


@plays("restart_pool")
def a_restart_asks_the_living_of_one_pool_once(play: Play) -> None:
    pools(play)
    play.add("worker_pools", host="h", name="refused", queues=["q"], state="refused")
    play.database.run("UPDATE worker_pools SET state = 'crash_loop' WHERE state = 'ok'")
    play.worker("mine", pool="p")
    play.worker("drained", pool="p", wanted="drain")
    play.worker("gone", pool="p", stopped_at="2026-01-01")
    play.worker("neighbour", pool="q")
    play.worker("foreign", pool="p", host="other")

    assert play.ids("restart_pool", host="h", pool="p", operator="me") == ["mine"]
    play.run("restart_pool", host="h", pool="refused", operator="me")
    assert play.values("SELECT state FROM worker_pools ORDER BY host, name") == [
        "ok",
        "crash_loop",
        "refused",
        "crash_loop",
    ]


@plays("announce_pool", "announce_types", "add_operation", "enqueue_job")
def statements_without_a_condition_have_nothing_to_lose(play: Play) -> None:
    """They insert, or replace a row by its primary key."""


# Where two sessions meet


@meets("beat_workers")
def a_beat_passes_by_a_row_that_somebody_has_locked_and_says_so(play: Play) -> None:
    """The other workers of its keeper are not to wait for a forgotten transaction."""
    play.worker("free", heartbeat_at="2026-01-01")
    play.worker("held", heartbeat_at="2026-01-01")
    a, b = play.cast["a"], play.cast["b"]
    a.conn.execute("BEGIN")
    a.conn.execute("SELECT FROM workers WHERE id = 'held' FOR UPDATE")
    b.conn.execute(f"SET lock_timeout = '{LOCK_LIMIT}'")
    rows = run_on(b.conn, play.text("beat_workers"), beat_params("free", "held", "deleted"))
    a.conn.execute("ROLLBACK")

    told = {row["id"]: (row["wanted"], row["is_ended"], row["is_locked"]) for row in rows}
    assert told == {"free": ("run", False, False), "held": (None, False, True), "deleted": (None, False, False)}
    assert play.values("SELECT id FROM workers WHERE heartbeat_at > '2026-02-01'") == ["free"]


@meets("save_outputs", "prune_workers", "prune_waits")
def upkeep_of_workers_passes_by_a_row_that_somebody_has_locked(play: Play) -> None:
    for worker_id in ("free", "held"):
        play.worker(worker_id, stopped_at="2026-01-01")
        play.add("worker_waits", worker_id=worker_id, waiting=True)
    a, b = play.cast["a"], play.cast["b"]
    a.conn.execute("BEGIN")
    a.conn.execute("SELECT FROM workers WHERE id = 'held' FOR UPDATE")
    a.conn.execute("SELECT FROM worker_waits WHERE worker_id = 'held' FOR UPDATE")
    b.conn.execute(f"SET lock_timeout = '{LOCK_LIMIT}'")
    saved = run_on(b.conn, play.text("save_outputs"), {"ids": ["free", "held"], "outputs": ["x", "x"]})
    run_on(b.conn, play.text("prune_waits"), {})
    run_on(b.conn, play.text("prune_workers"), {"kept": timedelta(days=1), "keep": 9})
    a.conn.execute("ROLLBACK")

    assert [row["id"] for row in saved] == ["free"]
    assert play.values("SELECT worker_id FROM worker_waits") == ["held"]
    assert play.values("SELECT id FROM workers") == ["held"]
