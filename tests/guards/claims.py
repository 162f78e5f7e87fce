"""Plays about claiming, ending and handing back jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg

from pgq_core.domain.stretch import WHOLE_QUEUE, Position, Stretch
from pgq_core.queries.claims import stretch_arrays
from tests.guards.play import LOCK_LIMIT, Play, run_on
from tests.guards.registry import meets, plays, spared

MINUTE = timedelta(minutes=1)
EVERYWHERE = stretch_arrays([WHOLE_QUEUE])
REDUNDANT = (
    "the rows were locked in this state by the same statement; every UPDATE names the state it expects, "
    "so that a later change of the CTE cannot take a job from its owner"
)


def claim(play: Play, stretches: Sequence[Stretch] = (WHOLE_QUEUE,), **changes: object) -> list[int]:
    given = {"queue": "q", "worker_id": "me", "limit": 10, "job_types": ["t"], "lease": None, "is_thorough": True}
    return play.ids("claim_jobs", **{**given, **changes}, **stretch_arrays(stretches))


@plays("claim_jobs")
def a_claim_takes_what_is_due_of_its_queue_and_types(play: Play) -> None:
    mine = [play.job(), play.due(-5)]
    play.job(queue="other")
    play.due(60)
    play.database.run("UPDATE jobs SET not_before = now() + interval '1 minute' WHERE id = %s", play.job())
    play.job(suspect=True)
    play.job(type="unknown")
    play.running()
    play.job(status="waiting", waiting_for="flow")

    assert claim(play) == mine
    assert claim(play) == []
    assert play.values("SELECT DISTINCT locked_by FROM jobs WHERE id = ANY (%s)", mine) == ["me"]


@plays("claim_jobs")
def a_job_whose_time_was_moved_past_the_triggers_does_not_run_early(play: Play) -> None:
    job = play.job()
    play.database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    play.database.run("UPDATE jobs SET not_before = now() + interval '1 hour' WHERE id = %s", job)
    play.database.run("ALTER TABLE jobs ENABLE TRIGGER USER")

    assert claim(play) == []


@plays("claim_jobs")
def a_claim_without_types_takes_any(play: Play) -> None:
    jobs = [play.job(), play.job(type="unknown")]

    assert claim(play, job_types=None) == jobs


@plays("claim_jobs")
def a_pause_holds_its_own_queue_only(play: Play) -> None:
    play.paused("q")
    play.job()
    free = play.job(queue="free")
    play.add("queues", name="free", paused=False)

    assert claim(play) == []
    assert claim(play, queue="free") == [free]


@plays("claim_jobs")
def a_claim_takes_as_many_as_asked_the_highest_priority_first(play: Play) -> None:
    play.job()
    urgent = play.job(priority=5)

    assert claim(play, limit=1) == [urgent]


@plays("claim_jobs")
def a_claim_looks_in_its_stretches_only(play: Play) -> None:
    before, first, second, behind = (play.due(-seconds) for seconds in (40, 30, 20, 10))
    urgent = play.job(priority=5)
    stretch = Stretch(position(play, before), position(play, second))

    assert claim(play, stretches=[stretch]) == [first, second]
    assert claim(play) == sorted([urgent, before, behind])


@plays("claim_jobs")
def a_claim_takes_as_many_as_asked_from_all_stretches_together(play: Play) -> None:
    first, second, third = (play.due(-seconds) for seconds in (30, 20, 10))
    middle = position(play, second)

    stretches = [Stretch(WHOLE_QUEUE.after, middle), Stretch(middle, WHOLE_QUEUE.until)]
    assert claim(play, stretches, limit=1) == [first]
    assert claim(play, stretches) == [second, third]


def position(play: Play, job: int) -> Position:
    (due,) = play.values("SELECT extract(epoch FROM not_before)::float8 FROM jobs WHERE id = %s", job)
    return Position(0, due, job)


spared("claim_jobs", "AND j.locked_by IS NULL", because=REDUNDANT)
ENDED = "AND age(xmax) > (SELECT age(pg_snapshot_xmax(pg_current_snapshot())::xid))"
NOT_HELD = f"OR (xmax <> ALL (ARRAY(SELECT xip::xid FROM pg_snapshot_xip(pg_current_snapshot()) AS xip)) {ENDED})"
spared(
    "claim_jobs",
    f"AND (%(is_thorough)s OR xmax = 0 {NOT_HELD})",
    "OR xmax = 0",
    NOT_HELD,
    ENDED,
    because="SKIP LOCKED passes over the same rows, only slower: tests/worker/test_sweep.py shows which and how",
)
spared(
    "claim_jobs",
    "LIMIT %(limit)s",
    because="the one around all stretches decides; this one lets the planner read each stretch in the index's order",
)


@plays("claim_spent_jobs")
def a_job_without_attempts_left_is_taken_unless_it_runs(play: Play) -> None:
    spent = [play.job(attempts=5), play.due(60, attempts=6)]
    play.job(attempts=4)
    play.running(attempts=5)
    play.job(attempts=5, status="waiting", waiting_for="flow")

    assert play.ids("claim_spent_jobs", holder="me", limit=10) == spent


@plays("claim_spent_jobs", "claim_suspect_job")
def doomed_and_suspect_jobs_are_taken_a_few_at_a_time(play: Play) -> None:
    play.job(attempts=5)
    play.job(attempts=5)
    play.job(suspect=True)
    play.job(suspect=True)

    assert len(play.ids("claim_spent_jobs", holder="me", limit=1)) == 1
    assert len(play.ids("claim_suspect_job", queues=["q"], worker_id="me", job_types=["t"])) == 1


@plays("claim_spent_jobs")
def a_spent_job_that_runs_takes_no_place_in_the_batch(play: Play) -> None:
    play.running(attempts=5)
    spent = play.job(attempts=5)

    assert play.ids("claim_spent_jobs", holder="me", limit=1) == [spent]


spared("claim_spent_jobs", "AND j.status IN ('pending', 'scheduled')", because=REDUNDANT)


@plays("claim_suspect_job")
def only_a_due_suspect_of_a_served_unpaused_queue_is_taken(play: Play) -> None:
    play.paused("held")
    play.add("queues", name="q", paused=False)
    play.job()
    play.job(suspect=True, queue="held", priority=9)
    play.job(suspect=True, queue="other", priority=9)
    play.job(suspect=True, type="unknown", priority=9)
    play.due(60, suspect=True, priority=9)
    play.running(suspect=True, priority=9)
    play.job(suspect=True, status="waiting", waiting_for="flow", priority=9)
    wanted = play.job(suspect=True)

    def take() -> list[int]:
        return play.ids("claim_suspect_job", queues=["q", "held"], worker_id="me", job_types=["t"])

    assert take() == [wanted]
    assert take() == []


@plays("claim_suspect_job")
def a_suspect_whose_time_was_moved_past_the_triggers_does_not_run_early(play: Play) -> None:
    job = play.job(suspect=True)
    play.database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    play.database.run("UPDATE jobs SET not_before = now() + interval '1 hour' WHERE id = %s", job)
    play.database.run("ALTER TABLE jobs ENABLE TRIGGER USER")

    assert play.ids("claim_suspect_job", queues=["q"], worker_id="me", job_types=["t"]) == []


spared("claim_suspect_job", "AND j.locked_by IS NULL", because=REDUNDANT)


def unknown(play: Play, *, limit: int = 10) -> list[int]:
    return play.ids("claim_unknown_jobs", holder="me", after=timedelta(hours=1), limit=limit)


@plays("claim_unknown_jobs")
def only_a_type_that_nobody_has_known_for_long_is_given_up(play: Play) -> None:
    play.worker("old", job_types=["known"], started_at="2026-01-01")
    play.worker("ended", job_types=["gone"], stopped_at="2026-01-02", started_at="2026-01-01")
    play.worker("starter", queues=["fresh"], state="starting", started_at="2026-01-01")
    play.worker("young", queues=["young"])
    play.worker("ended2", queues=["left"], stopped_at="2026-01-02", started_at="2026-01-01")
    play.add("job_types", name="announced")
    play.add("job_types", name="forgotten", announced_at="2026-01-01")
    wanted = [play.due(-7200, type=name) for name in ("strange", "gone", "forgotten")]
    wanted.append(play.due(-7200, type="strange", priority=3))
    lately = play.due(-60, type="strange")
    play.database.run("UPDATE jobs SET created_at = '2026-01-01' WHERE id = %s", lately)
    play.job(type="strange", not_before="2026-01-01")
    play.due(-7200, type="known")
    play.due(-7200, type="announced")
    for queue in ("fresh", "young", "left", "served by nobody"):
        play.due(-7200, type="strange", queue=queue)
    play.running(type="strange")
    play.database.run(
        "UPDATE jobs SET not_before = now() - interval '2 hours', created_at = '2026-01-01' WHERE locked_by IS NOT NULL"
    )
    held = play.job(type="strange", status="waiting", waiting_for="flow")
    play.database.run(
        "UPDATE jobs SET not_before = now() - interval '2 hours', created_at = '2026-01-01' WHERE id = %s", held
    )

    assert unknown(play) == wanted


@plays("claim_unknown_jobs")
def unknown_types_are_given_up_a_few_at_a_time(play: Play) -> None:
    play.worker("old", started_at="2026-01-01")
    for priority in (0, 0, 3):
        play.due(-7200, priority=priority)

    assert len(unknown(play, limit=1)) == 1


spared("claim_unknown_jobs", "AND j.locked_by IS NULL", because=REDUNDANT)
spared(
    "claim_unknown_jobs",
    "LIMIT 1",
    "LIMIT 1 #2",
    "WHERE status = 'pending' #2",
    "AND (queue, (-priority)) > (hop.queue, hop.place)",
    "AND queue = hop.queue",
    "AND (-priority) = hop.place",
    "WHERE status = 'pending'",
    "LIMIT %(limit)s",
    because="the walk over the index: it decides how much is read and when it ends; rows are asked again",
)


# Ends


def finish(
    play: Play,
    ids: list[int],
    tokens: list[int],
    outcomes: list[str] | None = None,
    *,
    results: Sequence[str | None] = (),
    errors: Sequence[str | None] = (),
) -> list[int]:
    count = len(ids)
    return play.ids(
        "finish_jobs",
        worker_id="me",
        slot=0,
        ids=ids,
        tokens=tokens,
        started=[None] * count,
        finished=[None] * count,
        outcomes=outcomes or ["succeeded"] * count,
        results=list(results) or [None] * count,
        errors=list(errors) or [None] * count,
    )


@plays("finish_jobs")
def an_outcome_is_accepted_only_from_the_claim_that_holds_the_job(play: Play) -> None:
    mine, reclaimed = play.running(1), play.running(2)
    released = play.running(1)
    play.database.run("UPDATE jobs SET locked_by = NULL, locked_at = NULL, status = 'pending' WHERE id = %s", released)
    untouched = play.running(1)

    assert finish(play, [mine, reclaimed, released, 99], [1, 1, 1, 1]) == [mine]
    assert play.values("SELECT id FROM jobs ORDER BY id") == [reclaimed, released, untouched]
    assert play.values("SELECT job_id FROM job_runs") == [mine]


@plays("finish_jobs")
def the_statistics_tell_the_outcomes_apart(play: Play) -> None:
    outcomes = ["succeeded", "cancelled", "cancelled", "discarded", "discarded", "discarded"]
    finish(play, [play.running() for _ in outcomes], [1] * 6, outcomes)

    row = play.database.one("SELECT succeeded, cancelled, discarded FROM job_stats")
    assert row == {"succeeded": 1, "cancelled": 2, "discarded": 3}
    assert play.database.value("SELECT count(*) FROM job_runs WHERE success") == 1
    assert play.database.value("SELECT count(*) FROM job_runs WHERE success IS NULL") == 5


@plays("finish_jobs")
def a_thinned_queue_leaves_out_plain_successes_and_nothing_else(play: Play) -> None:
    play.add("queues", name="q", audit="failures")
    play.add("queues", name="keeps", audit="all")
    plain = play.running()
    kept = [
        play.running(queue="keeps"),
        play.running(queue="never set"),
        play.running(attempts=1),
        play.running(losses=1),
        play.running(has_runs=True),
        play.running(replayed_from=7),
        play.running(cancel_requested=True),
    ]
    finish(play, [plain, *kept], [1] * 8)
    discarded, told, noted = (play.running() for _ in range(3))
    finish(play, [discarded], [1], ["discarded"])
    finish(play, [told], [1], results=["{}"])
    finish(play, [noted], [1], errors=["result not storable"])

    assert play.values("SELECT job_id FROM job_runs ORDER BY job_id") == [*kept, discarded, told, noted]
    assert play.values("SELECT sum(succeeded + discarded) FROM job_stats") == [11]


@plays("finish_jobs")
def a_sample_keeps_its_share_of_plain_successes(play: Play) -> None:
    play.add("queues", name="q", audit="sample", audit_sample=0.3)
    play.add("queues", name="none", audit="failures", audit_sample=1)
    play.add("queues", name="every", audit="sample", audit_sample=1)
    jobs = [play.running() for _ in range(60)]
    every, none = ([play.running(queue=name) for _ in range(5)] for name in ("every", "none"))
    finish(play, [*jobs, *every, *none], [1] * 70)

    kept = play.values("SELECT job_id FROM job_runs WHERE queue = 'q' ORDER BY job_id")
    assert kept == play.values(
        "SELECT id FROM unnest(%s::bigint[]) AS id WHERE hashint8(id) < 0.3 * 4294967296 - 2147483648 ORDER BY id", jobs
    )
    assert 0 < len(kept) < len(jobs)
    assert play.values("SELECT job_id FROM job_runs WHERE queue <> 'q' ORDER BY job_id") == every


@plays("reschedule_jobs")
def a_job_that_goes_back_has_a_run_behind_it(play: Play) -> None:
    back, untouched = play.running(), play.running()
    play.run("reschedule_jobs", **reschedule_params([back], [1], ["snoozed"]))

    assert play.values("SELECT id FROM jobs WHERE has_runs") == [back]
    assert untouched in play.values("SELECT id FROM jobs WHERE has_runs IS NULL")


def reschedule_params(ids: list[int], tokens: list[int], outcomes: list[str] | None = None) -> dict[str, object]:
    count = len(ids)
    none: list[object] = [None] * count
    outcomes = outcomes or ["retried"] * count
    return {
        "slot": 0,
        "ids": ids,
        "tokens": tokens,
        "workers": ["me"] * count,
        "started": none,
        "finished": none,
        "outcomes": outcomes,
        "charges": [int(outcome == "retried") for outcome in outcomes],
        "delays": [5.0 if outcome in {"retried", "snoozed"} else None for outcome in outcomes],
        "errors": none,
        "error_classes": none,
        "tracebacks": none,
        "losses": [int(outcome == "lost") for outcome in outcomes],
        "suspects": [False] * count,
    }


@plays("reschedule_jobs")
def a_retry_is_accepted_only_from_the_claim_that_holds_the_job(play: Play) -> None:
    mine, reclaimed = play.running(1), play.running(2)
    released = play.running(1)
    play.database.run("UPDATE jobs SET locked_by = NULL, locked_at = NULL, status = 'pending' WHERE id = %s", released)

    assert play.ids("reschedule_jobs", **reschedule_params([mine, reclaimed, released], [1, 1, 1])) == [mine]
    assert [play.status(job) for job in (mine, reclaimed, released)] == ["scheduled", "running", "pending"]
    assert play.values("SELECT attempts FROM jobs ORDER BY id") == [1, 0, 0]
    assert play.values("SELECT job_id FROM job_runs") == [mine]


@plays("reschedule_jobs")
def each_job_gets_its_own_fate_and_its_own_count(play: Play) -> None:
    outcomes = ["retried", *["lost"] * 2, *["released"] * 3, *["snoozed"] * 4, *["retried"] * 5]
    jobs = [play.running() for _ in outcomes]
    asked = jobs[-5:]
    neighbour = play.job()
    play.database.run("UPDATE jobs SET cancel_requested = true WHERE id = ANY (%s)", asked)
    play.run("reschedule_jobs", **reschedule_params(jobs, [1] * len(jobs), outcomes))

    stats = play.database.one("SELECT retried, lost, released, snoozed, cancelled FROM job_stats")
    assert stats == {"retried": 1, "lost": 2, "released": 3, "snoozed": 4, "cancelled": 5}
    assert play.values("SELECT id FROM jobs ORDER BY id") == [*jobs[:-5], neighbour]
    assert [play.status(job) for job in jobs[:-5]] == ["scheduled", *["pending"] * 5, *["scheduled"] * 4]
    assert play.values("SELECT attempts FROM jobs ORDER BY id") == [1, *[0] * 10]
    assert play.values("SELECT count(*) FROM job_runs WHERE outcome = 'cancelled'") == [5]
    assert play.values("SELECT count(*) FROM job_runs WHERE NOT success") == [3]


@plays("reschedule_jobs")
def a_job_that_is_released_keeps_its_place(play: Play) -> None:
    job = play.running()
    before = play.database.one("SELECT not_before FROM jobs")
    play.run("reschedule_jobs", **reschedule_params([job], [1], ["released"]))

    assert play.database.one("SELECT not_before FROM jobs") == before


def bury_params(ids: list[int], tokens: list[int], *, ran: bool = True) -> dict[str, object]:
    count = len(ids)
    return {
        "slot": 0,
        "ids": ids,
        "tokens": tokens,
        "workers": ["me"] * count,
        "started": [None] * count,
        "finished": [None] * count,
        "reasons": ["exhausted"] * count,
        "charges": [1] * count,
        "errors": ["broken"] * count,
        "error_classes": [None] * count,
        "tracebacks": [None] * count,
        "fingerprints": [None] * count,
        "ran": [ran] * count,
    }


@plays("bury_jobs")
def a_death_is_accepted_only_from_the_claim_that_holds_the_job(play: Play) -> None:
    mine, reclaimed = play.running(1), play.running(2)
    released = play.running(1)
    play.database.run("UPDATE jobs SET locked_by = NULL, locked_at = NULL, status = 'pending' WHERE id = %s", released)
    rows = play.run("bury_jobs", **bury_params([mine, reclaimed, released], [1, 1, 1]))

    assert [row["job_id"] for row in rows] == [mine]
    assert play.values("SELECT id FROM jobs ORDER BY id") == [reclaimed, released]
    assert play.values("SELECT original_job_id FROM dead_letter_jobs") == [mine]
    assert play.values("SELECT job_id FROM job_runs") == [mine]


@plays("bury_jobs")
def a_dead_letter_tells_the_story_of_its_own_job(play: Play) -> None:
    job = play.running(created_at="2026-11-01")
    other = play.running()
    for job_id, started_at in ((job, "now"), (other, "now"), (job, "yesterday")):
        play.add("job_runs", job_id=job_id, worker_id="w", started_at=started_at, finished_at="now", outcome="retried")
    play.database.run("UPDATE jobs SET created_at = now() - interval '1 hour' WHERE id = %s", job)
    play.run("bury_jobs", **bury_params([job], [1]))

    log = play.database.value("SELECT attempt_log FROM dead_letter_jobs")
    assert [entry["outcome"] for entry in log] == ["retried", "dead"]


@plays("bury_jobs")
def only_an_attempt_that_ran_has_a_number_and_the_story_has_an_end(play: Play) -> None:
    ran, never_ran = play.running(), play.running()
    for _ in range(51):
        play.add("job_runs", job_id=ran, worker_id="w", started_at="now", finished_at="now", outcome="released")
    play.run("bury_jobs", **bury_params([ran], [1]))
    play.run("bury_jobs", **bury_params([never_ran], [1], ran=False))

    assert play.values("SELECT attempt FROM job_runs WHERE outcome = 'dead' ORDER BY job_id") == [1, 0]
    assert play.values("SELECT jsonb_array_length(attempt_log) FROM dead_letter_jobs ORDER BY id") == [51, 1]


@plays("release_jobs")
def a_job_is_handed_back_only_by_the_claim_that_holds_it(play: Play) -> None:
    mine, reclaimed, asked = play.running(1), play.running(2), play.running(1, cancel_requested=True)
    released = play.running(1)
    play.database.run(
        "UPDATE jobs SET locked_by = NULL, locked_at = NULL, status = 'scheduled', "
        "not_before = now() + interval '1 hour' WHERE id = %s",
        released,
    )
    rows = play.run("release_jobs", ids=[mine, reclaimed, asked, released], tokens=[1, 1, 1, 1])

    assert sorted((row["id"], row["is_cancelled"]) for row in rows) == [(mine, False), (asked, True)]
    assert [play.status(job) for job in (mine, reclaimed, asked, released)] == ["pending", "running", None, "scheduled"]
    assert play.values("SELECT job_id FROM job_runs") == [asked]
    assert play.values("SELECT cancelled FROM job_stats") == [1]


@plays("list_claims")
def a_worker_is_told_of_its_own_claims_newer_than_a_token(play: Play) -> None:
    play.running(6)
    play.running(7, worker="neighbour")
    known, first, second = (play.running(token, worker="me") for token in (5, 6, 7))

    rows = play.run("list_claims", worker_id="me", after=5)
    assert [(row["id"], row["claim_token"]) for row in rows] == [(first, 6), (second, 7)]
    assert play.ids("list_claims", worker_id="me", after=0) == [known, first, second]


spared(
    "list_claims",
    "AND status = 'running'",
    because="the table's own check says that a job with an owner runs; this names the index",
)
spared("list_claims", "LIMIT 100000", because="more than a worker can hold; it bounds the answer of a table gone wrong")

ONE_WRITE = (
    "a row is written once in a statement; which of two writes wins is the planner's choice, and this keeps them apart"
)

spared("release_jobs", "WHERE cancel_requested", because=ONE_WRITE)
spared("reschedule_jobs", "WHERE outcome = 'cancelled'", "WHERE outcome <> 'cancelled'", because=ONE_WRITE)
spared(
    "reschedule_jobs",
    "WHEN now() + f.delays[place] > now()",
    because="the trigger derives the same from the time; this spares it",
)


@plays("extend_lease")
def a_lease_is_renewed_only_by_the_claim_that_holds_the_job(play: Play) -> None:
    mine, reclaimed, neighbour = play.running(1), play.running(2), play.running(1)
    released = play.running(1)
    play.database.run("UPDATE jobs SET locked_by = NULL, locked_at = NULL, status = 'pending' WHERE id = %s", released)

    assert [play.count("extend_lease", id=job, token=1, lease=MINUTE) for job in (mine, reclaimed, released)] == [
        1,
        0,
        0,
    ]
    assert play.values("SELECT id FROM jobs WHERE lease_until IS NOT NULL") == [mine]
    assert play.status(neighbour) == "running"


# Where two sessions meet


@meets("claim_jobs", "claim_spent_jobs", "claim_suspect_job", "claim_unknown_jobs")
def a_claim_waits_for_nobody(play: Play) -> None:
    play.worker("old", started_at="2026-01-01")
    jobs = [play.due(-7200, attempts=5), play.due(-7200, attempts=5)]
    suspects = [play.due(-7200, suspect=True, type="s"), play.due(-7200, suspect=True, type="s")]
    play.cast["a"].conn.execute("BEGIN")
    play.cast["a"].conn.execute("SELECT FROM jobs WHERE id = ANY (%s) FOR UPDATE", ([jobs[0], suspects[0]],))

    def taken(name: str, **params: object) -> list[int]:
        conn = play.cast["b"].conn
        conn.execute(f"SET lock_timeout = '{LOCK_LIMIT}'")
        try:
            with conn.transaction(force_rollback=True):
                return sorted(row["id"] for row in run_on(conn, play.text(name), params))
        except psycopg.errors.LockNotAvailable:
            raise AssertionError(f"{name} waits for a locked row") from None

    asked = {"queue": "q", "worker_id": "b", "limit": 9, "job_types": ["t"], "lease": None, "is_thorough": True}
    assert taken("claim_jobs", **asked, **EVERYWHERE) == jobs[1:]
    assert taken("claim_spent_jobs", holder="b", limit=9) == jobs[1:]
    assert taken("claim_suspect_job", queues=["q"], worker_id="b", job_types=["s"]) == suspects[1:]
    assert taken("claim_unknown_jobs", holder="b", after=timedelta(hours=1), limit=9) == [jobs[1], suspects[1]]


@meets("finish_jobs", "reschedule_jobs", "bury_jobs", "release_jobs")
def a_write_that_waited_for_the_rescue_of_its_job_finds_it_gone(play: Play) -> None:
    """Another session hands the job back and claims it anew, while the old owner's write waits for the row."""
    for name, params in _writes().items():
        job = play.running(1)
        a, b = play.cast["a"], play.cast["b"]
        a.conn.execute("BEGIN")
        a.conn.execute("UPDATE jobs SET status = 'pending', locked_by = NULL, locked_at = NULL WHERE id = %s", (job,))
        a.conn.execute("UPDATE jobs SET locked_by = 'new', claim_token = 7 WHERE id = %s", (job,))
        b.start(play.by(name, **_for(params, job)))
        play.cast.wait_until_blocked(b)
        a.conn.execute("COMMIT")

        assert b.end() == [], f"{name} took a job that was claimed anew"
        assert play.values("SELECT locked_by FROM jobs WHERE id = %s", job) == ["new"]
        assert play.values("SELECT count(*) FROM job_runs WHERE job_id = %s", job) == [0]


@meets("release_jobs")
def sleepers_are_woken_for_what_is_handed_back(play: Play) -> None:
    channel = play.database.value("SELECT wake_channel()")
    a, ear = play.cast["a"], play.cast["ear"]
    ear.conn.execute(f'LISTEN "{channel}"')
    gone, idle = play.running(cancel_requested=True), play.running()
    back = play.running()

    def words_after(job: int) -> list[str]:
        run_on(a.conn, play.text("release_jobs"), {"ids": [job], "tokens": [1]})
        a.conn.execute("SELECT pg_notify(wake_channel(), 'end')")
        heard: list[str] = []
        for notice in ear.conn.notifies(timeout=30):
            heard.append(notice.payload)
            if notice.payload == "end":
                break
        return heard

    assert words_after(idle) == ["end"], "nobody sleeps"
    play.add("worker_waits", worker_id="awake", waiting=False)
    assert words_after(play.running()) == ["end"], "nobody sleeps"
    play.add("worker_waits", worker_id="sleeper", waiting=True)
    assert words_after(gone) == ["end"], "nothing came back"
    assert words_after(back) == ["jobs", "end"]


@meets("reschedule_jobs", "bury_jobs", "release_jobs")
def a_batch_locks_its_rows_in_the_order_of_their_ids(play: Play) -> None:
    numbers = iter([(200, 100), (400, 300), (600, 500)])
    for name, params in _writes().items():
        if name == "finish_jobs":  # its rows come sorted from the caller, see tests/interleavings
            continue
        # The row of the higher id stands first in the table and in the batch: only the order by id comes out right.
        high, low = (play.running(1, id=number) for number in next(numbers))
        a, b = play.cast["a"], play.cast["b"]
        a.conn.execute("BEGIN")
        a.conn.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (high,))
        b.conn.execute("SET enable_sort = off")
        b.start(play.by(name, **_for(params, high, low)))
        play.cast.wait_until_blocked(b)
        free = play.values("SELECT id FROM jobs WHERE id = %s FOR UPDATE SKIP LOCKED", low)
        a.conn.execute("ROLLBACK")
        b.end()

        assert free == [], f"{name} waits for {high} and has not yet locked {low}"


def _writes() -> dict[str, dict[str, Any]]:
    return {
        "finish_jobs": {
            "worker_id": "b",
            "slot": 0,
            "outcomes": ["succeeded"],
            "results": [None],
            "errors": [None],
            "started": [None],
            "finished": [None],
        },
        "reschedule_jobs": reschedule_params([0], [1]),
        "bury_jobs": bury_params([0], [1]),
        "release_jobs": {},
    }


def _for(params: dict[str, Any], *ids: int) -> dict[str, Any]:
    """The same for these jobs, all under token 1."""
    many = {name: value * len(ids) if isinstance(value, list) else value for name, value in params.items()}
    return {**many, "ids": list(ids), "tokens": [1] * len(ids)}
