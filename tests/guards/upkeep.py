"""Plays about recovery, promotion and retention."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import psycopg

from tests.guards.claims import REDUNDANT
from tests.guards.play import LOCK_LIMIT, Play, run_on
from tests.guards.registry import meets, plays, spared

SECOND, HALF_MINUTE, HOUR, DAY = timedelta(seconds=1), timedelta(seconds=30), timedelta(hours=1), timedelta(days=1)
YEARS = timedelta(days=36500)
"""Longer than the server of these tests has been up."""


@plays("mark_lost_workers")
def only_a_silent_worker_is_taken_for_lost(play: Play) -> None:
    play.worker("silent", heartbeat_at="2026-01-01")
    play.worker("alive")
    play.worker("gone", heartbeat_at="2026-01-01", stopped_at="2026-01-01", state="stopped")

    assert play.ids("mark_lost_workers", stale_limit=timedelta(0)) in ([], ["silent"])
    play.worker("silent too", heartbeat_at="2026-01-01")
    assert play.ids("mark_lost_workers", stale_limit=timedelta(microseconds=1)) in (
        ["silent", "silent too"],
        ["silent too"],
    )
    assert play.values("SELECT state FROM workers WHERE id IN ('alive', 'gone') ORDER BY id") == ["running", "stopped"]


@plays("mark_lost_workers", "lock_lost_jobs")
def nobody_is_taken_for_lost_before_the_server_has_been_up_so_long(play: Play) -> None:
    """Healthy workers had no chance to beat while it was down."""
    play.worker("silent", heartbeat_at="1900-01-01")
    play.job(locked_by="unknown", claim_token=1, locked_at="1900-01-01")

    assert play.ids("mark_lost_workers", stale_limit=YEARS) == []
    assert play.ids("lock_lost_jobs", stale_limit=YEARS, limit=10, except_jobs=[]) == []


spared("mark_lost_workers", "AND w.stopped_at IS NULL", "WHERE stopped_at IS NULL", because=REDUNDANT)
spared("mark_lost_workers", "LIMIT 1000", because="bounds one transaction; a thousand rows are no play")


@plays("lock_lost_jobs")
def only_a_job_that_nobody_works_on_is_rescued(play: Play) -> None:
    play.worker("alive")
    play.worker("gone", stopped_at="2026-01-01")
    old = {"claim_token": 1, "locked_at": "2026-01-01"}
    lost = [
        play.job(locked_by="own loop", lease_until="2026-01-02", **old),
        play.job(locked_by="gone", claim_token=1),
        play.job(locked_by="never registered", **old),
    ]
    lost.append(play.job(locked_by="never registered", **old))
    past_the_triggers(play, f"UPDATE jobs SET locked_at = NULL WHERE id = {lost[-1]}")
    play.job(locked_by="own loop", lease_until="2999-01-01", **old)
    play.job(locked_by="gone", lease_until="2999-01-01", **old)
    play.job(locked_by="alive", **old)
    play.job(locked_by="just now", claim_token=1)
    play.job()

    def found(limit: int = 10, except_jobs: Sequence[int] = ()) -> list[int]:
        tick = timedelta(microseconds=1)
        return play.ids("lock_lost_jobs", stale_limit=tick, limit=limit, except_jobs=list(except_jobs))

    assert found() == lost
    tokens = play.run("lock_lost_jobs", stale_limit=timedelta(microseconds=1), limit=10, except_jobs=[])
    assert sorted(row["claim_token"] for row in tokens) == [0, 1, 1, 1], "0: it lacks the time of its claim"
    assert len(found(1)) == 1
    assert found(except_jobs=lost[1:]) == lost[:1]


@plays("complete_claims")
def only_running_rows_that_are_named_get_a_token_and_a_time(play: Play) -> None:
    bare, untold, pending = play.running(), play.running(), play.job()
    past_the_triggers(play, "UPDATE jobs SET claim_token = NULL, locked_at = NULL")

    assert play.ids("complete_claims", ids=[bare, pending]) == [bare]
    assert play.values("SELECT id FROM jobs WHERE claim_token IS NOT NULL AND locked_at IS NOT NULL") == [bare]
    assert play.values("SELECT claim_token FROM jobs WHERE id = %s", untold) == [None]


spared(
    "lock_lost_jobs",
    "WHERE j.locked_by IS NOT NULL",
    "AND j.status = 'running'",
    because="by a constraint each follows from the other; the first finds the index, the second is the rule",
)


@plays("lock_claims_of_worker", "lock_free_claims_of_worker")
def a_dead_worker_gives_back_its_own_jobs_only(play: Play) -> None:
    mine = play.running(worker="dead")
    play.running(worker="alive")
    for lacks in ("claim_token", "locked_at"):
        past_the_triggers(play, f"UPDATE jobs SET {lacks} = NULL WHERE id = {play.running(worker='dead')}")

    assert play.ids("lock_claims_of_worker", worker_id="dead") == [mine]
    assert play.ids("lock_free_claims_of_worker", worker_id="dead") == [mine]


for name in ("lock_claims_of_worker", "lock_free_claims_of_worker"):
    spared(name, "AND j.status = 'running'", because="a constraint of the table: who has an owner runs")


@plays("pull_back_beats")
def a_beat_from_the_future_counts_from_now_on(play: Play) -> None:
    play.worker("ahead", heartbeat_at="2999-01-01")
    play.worker("in time", heartbeat_at="2026-01-01")
    play.worker("gone", heartbeat_at="2999-01-01", stopped_at="2026-01-01")
    play.run("pull_back_beats")

    assert play.values("SELECT id FROM workers WHERE heartbeat_at > now() + interval '1 minute'") == ["gone"]
    assert play.values("SELECT id FROM workers WHERE heartbeat_at = '2026-01-01'") == ["in time"]


def promote(play: Play, *queues: str, limit: int = 10, except_worker: str = "") -> dict[str, object]:
    (row,) = play.run("promote_due_jobs", queues=list(queues), limit=limit, except_worker=except_worker)
    return row


def past_the_triggers(play: Play, statement: str) -> None:
    play.database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    play.database.run(statement)
    play.database.run("ALTER TABLE jobs ENABLE TRIGGER USER")


@plays("promote_due_jobs")
def due_jobs_of_the_asked_queues_become_pending(play: Play) -> None:
    due = [play.due(60), play.due(60)]
    play.due(60, queue="other")
    held = play.job(status="waiting", waiting_for="flow")
    running = play.running()
    past_the_triggers(play, "UPDATE jobs SET not_before = now() - interval '1 second'")
    later = play.due(30)

    assert promote(play, "q", limit=1)["promoted"] == 1
    answer = promote(play, "q")
    assert answer["promoted"] == 1
    assert 25 < float(str(answer["next_due_in"])) <= 30
    assert [play.status(job) for job in (*due, held, running, later)] == [
        "pending",
        "pending",
        "waiting",
        "running",
        "scheduled",
    ]
    assert play.values("SELECT status FROM jobs WHERE queue = 'other'") == ["scheduled"]


@plays("promote_due_jobs")
def the_next_time_is_that_of_a_scheduled_job_of_the_queue(play: Play) -> None:
    play.due(30, queue="other")
    play.due(-60)
    past_the_triggers(play, f"UPDATE jobs SET status = 'scheduled' WHERE id = {play.due(-5)}")
    held = play.job(status="waiting", waiting_for="flow")
    past_the_triggers(play, f"UPDATE jobs SET not_before = now() + interval '10 s' WHERE id = {held}")

    assert promote(play, "q", limit=0)["next_due_in"] is None


@plays("promote_due_jobs")
def sleepers_other_than_the_caller_are_woken_when_something_became_due(play: Play) -> None:
    play.add("worker_waits", worker_id="me", waiting=True)
    play.add("worker_waits", worker_id="awake", waiting=False)
    play.due(60)
    past_the_triggers(play, "UPDATE jobs SET not_before = now() - interval '1 second'")
    assert promote(play, "q", except_worker="me")["woken"] == 0

    play.add("worker_waits", worker_id="sleeper", waiting=True)
    assert promote(play, "q", except_worker="me")["woken"] == 0, "nothing is due"
    play.due(60)
    past_the_triggers(play, "UPDATE jobs SET not_before = now() - interval '1 second'")
    assert promote(play, "q", except_worker="me")["woken"] == 1


spared("promote_due_jobs", "AND j.locked_by IS NULL", because=REDUNDANT)
spared("promote_due_jobs", "LIMIT 1", because="the earliest of the queue: one row is enough, more would only cost")


@plays("prune_dead_letters")
def only_resolved_letters_past_retention_go(play: Play) -> None:
    old = [play.letter(resolution="discarded") for _ in range(2)]
    play.letter(resolution="discarded", resolved_at="2999-01-01")
    play.letter(died_at="2026-01-01")
    unresolved = play.letter()

    assert play.count("prune_dead_letters", kept=DAY, limit=1) == 1
    assert play.count("prune_dead_letters", kept=DAY, limit=10) == 1
    assert play.values("SELECT count(*) FROM dead_letter_jobs WHERE id = ANY (%s)", old) == [0]
    assert unresolved in play.values("SELECT id FROM dead_letter_jobs")
    assert play.database.value("SELECT count(*) FROM dead_letter_jobs") == 3


spared(
    "prune_dead_letters",
    "WHERE resolution IS NOT NULL",
    "AND resolution IS NOT NULL",
    because="by a constraint they follow from the time, which is asked; one names the index, one the rule",
)


@plays("prune_keys")
def only_keys_whose_window_is_over_go(play: Play) -> None:
    for key, expires_at in (
        ("old", "2026-01-01"),
        ("older", "2025-01-01"),
        ("open", "2999-01-01"),
        ("held", "infinity"),
        ("live", None),
    ):
        play.add("job_keys", key=key, job_id=1, queue="q", payload_hash="x", expires_at=expires_at)

    assert play.count("prune_keys", limit=1) == 1
    assert play.values("SELECT key FROM job_keys WHERE key LIKE 'old%%'") == ["old"]
    play.run("prune_keys", limit=10)
    assert play.values("SELECT key FROM job_keys ORDER BY key") == ["held", "live", "open"]


spared("prune_keys", "AND expires_at < now()", "WHERE expires_at < now()", because=REDUNDANT)

CELLS = "{" + ",".join(["0"] * 24) + "}"


def stats(play: Play, bucket: str, *, slot: int = 0, queue: str = "q", job_type: str = "t") -> None:
    play.database.run(
        "INSERT INTO job_stats (bucket, queue, job_type, slot, succeeded, durations, waits) VALUES "
        "(CASE WHEN %s = '-infinity' THEN '-infinity' ELSE now() - %s::interval END, %s, %s, %s, 1, %s, %s)",
        bucket,
        "1 s" if bucket == "-infinity" else bucket,
        queue,
        job_type,
        slot,
        CELLS,
        CELLS,
    )


@plays("prune_stats", "roll_up_stats")
def statistics_are_summed_up_and_none_is_lost(play: Play) -> None:
    for queue, job_type in (("q", "t"), ("q", "u"), ("r", "t")):
        for slot in (0, 1):
            stats(play, "100 days", slot=slot, queue=queue, job_type=job_type)
            stats(play, "2 hours", slot=slot, queue=queue, job_type=job_type)
    stats(play, "-infinity")
    stats(play, "1 minute", slot=3)

    def counted() -> list[int]:
        return play.values("SELECT sum(succeeded) FROM job_stats GROUP BY queue, job_type ORDER BY queue, job_type")

    before = counted()
    play.run("prune_stats", kept=timedelta(days=90), limit=100)
    assert play.values("SELECT queue FROM job_stats WHERE bucket < now() - interval '90 days' ORDER BY queue") == [
        "q",
        "q",
        "r",
    ]
    assert play.run("prune_stats", kept=timedelta(days=90), limit=100) == []
    assert counted() == before
    assert play.values("SELECT sum(succeeded) FROM job_stats WHERE bucket = '-infinity'") == [7]

    step = timedelta(minutes=1)
    play.run("roll_up_stats", step=step, older_than=HOUR, limit=100)
    assert counted() == before
    assert play.values("SELECT slot FROM job_stats WHERE bucket > now() - interval '1 hour'") == [3]
    assert (
        play.values(
            "SELECT queue FROM job_stats WHERE bucket BETWEEN '2000-01-01' AND now() - interval '1 hour' "
            "AND bucket <> date_bin('1 minute', bucket, timestamptz '2000-01-01 00:00+00')"
        )
        == []
    )
    (again,) = play.run("roll_up_stats", step=step, older_than=HOUR, limit=100)
    assert again["moved"] in {0, 1}, "what is summed up already stays (the endless past is no multiple of a minute)"


@plays("prune_stats", "roll_up_stats")
def statistics_are_summed_up_a_few_at_a_time_and_each_into_its_own_sum(play: Play) -> None:
    for number, queue in enumerate(("q", "r", "s")):
        stats(play, "100 days", slot=1, queue=queue)
        play.database.run(
            "UPDATE job_stats SET durations[1] = %s, waits[2] = %s WHERE queue = %s", number, number, queue
        )

    (moved,) = play.run("roll_up_stats", step=DAY, older_than=DAY, limit=1)
    assert moved["moved"] == 1
    play.run("roll_up_stats", step=DAY, older_than=DAY, limit=10)
    assert len(play.run("prune_stats", kept=timedelta(days=90), limit=1)) == 1
    play.run("prune_stats", kept=timedelta(days=90), limit=10)
    assert play.values("SELECT durations[1] FROM job_stats ORDER BY queue") == [0, 1, 2]
    assert play.values("SELECT waits[2] FROM job_stats ORDER BY queue") == [0, 1, 2]


@plays("prune_waits")
def only_sleepers_that_live_are_remembered(play: Play) -> None:
    play.worker("alive")
    play.worker("gone", stopped_at="2026-01-01")
    for worker_id in ("alive", "gone", "never seen"):
        play.add("worker_waits", worker_id=worker_id, waiting=True)
    play.run("prune_waits")

    assert play.values("SELECT worker_id FROM worker_waits") == ["alive"]


@plays("prune_workers")
def workers_that_ended_long_ago_are_forgotten(play: Play) -> None:
    play.worker("alive", started_at="2026-01-01")
    play.worker("old", stopped_at="2026-01-01")
    play.worker("holder", stopped_at="2026-01-01")
    play.running(worker="holder")
    for number in range(3):
        play.worker(f"ended {number}")
        play.age("workers", "stopped_at", 10 * number + 1, "id = %s", f"ended {number}")
    play.run("prune_workers", kept=DAY, keep=2)

    assert play.values("SELECT id FROM workers ORDER BY id") == ["alive", "ended 0", "ended 1", "holder"]


@plays("prune_workers")
def a_worker_that_ended_lately_is_kept(play: Play) -> None:
    play.worker("old", stopped_at="2026-01-01")
    play.worker("ended")
    play.age("workers", "stopped_at", 10, "id = 'ended'")
    play.run("prune_workers", kept=DAY, keep=9)

    assert play.values("SELECT id FROM workers") == ["ended"]


spared(
    "prune_workers",
    "WHERE w.stopped_at IS NOT NULL",
    because="a comparison with the time of a worker that lives is never true: this one says so",
)


@plays("release_orphan_keys")
def only_a_key_without_a_holder_is_freed(play: Play) -> None:
    live = play.job(idempotency_key="live")
    dead = play.letter(play.job(), idempotency_key="dead")
    play.letter(501, idempotency_key="resolved", resolution="discarded")
    play.letter(502, idempotency_key="of another name")
    holder = play.values("SELECT original_job_id FROM dead_letter_jobs WHERE id = %s", dead)[0]
    for key, job_id, expires_at in (
        ("dead", holder, "infinity"),
        ("resolved", 501, "infinity"),
        ("another", 502, "infinity"),
        ("lost", 503, None),
        ("not this one", live, None),
        ("window", 504, "2999-01-01"),
        ("aaa", 505, None),
    ):
        play.add("job_keys", key=key, job_id=job_id, queue="q", payload_hash="x", expires_at=expires_at)
    play.job(idempotency_key="mine by name")
    play.database.run("UPDATE job_keys SET job_id = 900 WHERE key = 'mine by name'")
    play.letter(510, idempotency_key="theirs by name")
    play.add("job_keys", key="theirs by name", job_id=511, queue="q", payload_hash="x", expires_at="infinity")
    play.run("release_orphan_keys", after="aab", limit=100)

    assert play.values("SELECT key FROM job_keys WHERE expires_at = now() ORDER BY key") == [
        "another",
        "lost",
        "mine by name",
        "not this one",
        "resolved",
        "theirs by name",
    ]


@plays("release_orphan_keys")
def keys_are_looked_through_in_windows(play: Play) -> None:
    for key in ("a", "b"):
        play.add("job_keys", key=key, job_id=1, queue="q", payload_hash="x")
    (row,) = play.run("release_orphan_keys", after="", limit=1)

    assert row["last_key"] == "a"
    assert play.values("SELECT key FROM job_keys WHERE expires_at IS NULL") == ["b"]
    assert play.run("release_orphan_keys", after="b", limit=1) == []


spared("release_orphan_keys", "LIMIT 1", "LIMIT 1 #2", because="whether there is any: one row is enough")
spared(
    "release_orphan_keys",
    "WHEN p.expires_at IS NULL",
    "AND k.job_id = o.job_id",
    "AND k.expires_at IS NOT DISTINCT FROM o.expires_at",
    because="played by two sessions: a key that was taken over meanwhile",
)


@plays("set_key_window")
def a_window_that_is_set_already_is_not_written_again(play: Play) -> None:
    assert play.count("set_key_window", seconds="60") == 1
    assert play.count("set_key_window", seconds="60") == 0
    assert play.database.value("SELECT key_window() = interval '60 s'")


# Where two sessions meet


@meets(
    "lock_lost_jobs",
    "mark_lost_workers",
    "pull_back_beats",
    "promote_due_jobs",
    "prune_dead_letters",
    "prune_keys",
    "prune_stats",
    "roll_up_stats",
    "purge_jobs",
)
def upkeep_waits_for_nobody(play: Play) -> None:
    play.running(worker="nobody", locked_at="2026-01-01")
    play.worker("silent", heartbeat_at="2026-01-01")
    play.worker("ahead", heartbeat_at="2999-01-01")
    play.due(60)
    past_the_triggers(play, "UPDATE jobs SET not_before = now() - interval '1 second' WHERE locked_by IS NULL")
    _pending, _waiting = play.job(queue="p"), play.job(queue="p", status="waiting", waiting_for="flow")
    play.due(60, queue="p")
    play.letter(resolution="discarded")
    play.add("job_keys", key="old", job_id=1, queue="q", payload_hash="x", expires_at="2026-01-01")
    stats(play, "100 days", slot=2)
    holder = play.cast["a"].conn
    holder.execute("BEGIN")
    for table in ("jobs", "workers", "dead_letter_jobs", "job_keys", "job_stats"):
        holder.execute(f"SELECT FROM {table} FOR UPDATE")
    conn = play.cast["b"].conn
    conn.execute(f"SET lock_timeout = '{LOCK_LIMIT}'")

    def found(name: str, **params: object) -> object:
        try:
            with conn.transaction(force_rollback=True):
                return run_on(conn, play.text(name), params)
        except psycopg.errors.LockNotAvailable:
            raise AssertionError(f"{name} waits for a locked row") from None

    tick = timedelta(microseconds=1)
    assert found("lock_lost_jobs", stale_limit=tick, limit=9, except_jobs=[]) == []
    assert found("mark_lost_workers", stale_limit=tick) == []
    found("pull_back_beats")
    assert found("promote_due_jobs", queues=["q"], limit=9, except_worker="")[0]["promoted"] == 0  # type: ignore[index]  # rows
    found("prune_dead_letters", kept=DAY, limit=9)
    found("prune_keys", limit=9)
    assert found("prune_stats", kept=DAY, limit=9) == []
    assert found("roll_up_stats", step=DAY, older_than=DAY, limit=9) == [{"moved": 0}]
    for status in ("pending", "scheduled", "waiting"):
        assert found("purge_jobs", queue="p", status=status, max_id=99, limit=9) == []


@meets("lock_claims_of_worker")
def the_jobs_of_a_dead_worker_are_waited_for_and_taken_in_order(play: Play) -> None:
    """A statement that it sent last may still be under way: what it finishes is not rescued."""
    high = play.running(worker="dead", id=1000)
    low = play.running(worker="dead", id=900)
    a, b = play.cast["a"], play.cast["b"]
    a.conn.execute("BEGIN")
    a.conn.execute("DELETE FROM jobs WHERE id = %s", (high,))
    b.conn.execute("BEGIN")
    b.conn.execute("SET LOCAL enable_indexscan = off")
    b.conn.execute("SET LOCAL enable_bitmapscan = off")
    b.conn.execute("SET LOCAL enable_mergejoin = off")
    b.conn.execute("SET LOCAL enable_hashjoin = off")
    b.start(play.by("lock_claims_of_worker", worker_id="dead"))
    play.cast.wait_until_blocked(b)
    free = play.values("SELECT id FROM jobs WHERE id = %s FOR UPDATE SKIP LOCKED", low)
    a.conn.execute("COMMIT")

    assert [row["id"] for row in b.end()] == [low]
    assert free == []


@meets("lock_free_claims_of_worker")
def what_a_stranger_has_locked_does_not_keep_the_other_jobs_of_a_dead_worker(play: Play) -> None:
    held, free = play.running(worker="dead"), play.running(worker="dead")
    a, b = play.cast["a"], play.cast["b"]
    a.conn.execute("BEGIN")
    a.conn.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (held,))
    b.conn.execute(f"SET lock_timeout = '{LOCK_LIMIT}'")
    rows = run_on(b.conn, play.text("lock_free_claims_of_worker"), {"worker_id": "dead"})
    a.conn.execute("ROLLBACK")

    assert [row["id"] for row in rows] == [free]


@meets("release_orphan_keys")
def a_key_that_was_taken_over_meanwhile_stays(play: Play) -> None:
    for key in ("a", "b"):
        play.add("job_keys", key=key, job_id=900, queue="q", payload_hash="x")
    a, b = play.cast["a"], play.cast["b"]
    a.conn.execute("BEGIN")
    a.conn.execute("UPDATE job_keys SET job_id = 901 WHERE key = 'a'")
    a.conn.execute("UPDATE job_keys SET expires_at = 'infinity' WHERE key = 'b'")
    b.start(play.by("release_orphan_keys", after="", limit=9))
    play.cast.wait_until_blocked(b)
    a.conn.execute("COMMIT")
    b.end()

    assert play.values("SELECT job_id FROM job_keys WHERE expires_at IS NULL") == [901]
    assert play.values("SELECT key FROM job_keys WHERE expires_at = 'infinity'") == ["b"]
