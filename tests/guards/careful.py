"""Plays about jobs whose write was refused, and about what goes on around them row by row."""

from __future__ import annotations

from datetime import timedelta

import psycopg

from pgq_core.domain.stretch import WHOLE_QUEUE
from pgq_core.queries.claims import stretch_arrays
from tests.guards.play import LOCK_LIMIT, Play, run_on
from tests.guards.registry import meets, plays, spared

SERVED = {"queues": ["q", "held"], "job_types": ["t"]}


def make_due(play: Play, *jobs: int) -> None:
    """Past the triggers, which would make them pending at once."""
    play.database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    play.database.run("UPDATE jobs SET not_before = now() - interval '1 second' WHERE id = ANY (%s)", list(jobs))
    play.database.run("ALTER TABLE jobs ENABLE TRIGGER USER")


@plays("claim_jobs", "claim_suspect_job", "list_claimable_jobs")
def a_claim_passes_by_the_jobs_that_were_refused(play: Play) -> None:
    (refused, free), (bad, good) = [play.job(), play.job()], [play.job(suspect=True), play.job(suspect=True)]
    left_out = {"except_jobs": [refused, bad]}
    asked = {"queue": "q", "worker_id": "me", "limit": 9, "job_types": ["t"], "lease": None, "is_thorough": True}

    assert play.ids("list_claimable_jobs", **SERVED, suspect=False, limit=9, **left_out) == [free]
    assert play.ids("claim_jobs", **asked, **stretch_arrays([WHOLE_QUEUE]), **left_out) == [free]
    assert play.ids("claim_suspect_job", **SERVED, worker_id="me", **left_out) == [good]


@plays("claim_spent_jobs", "claim_unknown_jobs")
def the_doomed_are_passed_by_where_they_were_refused(play: Play) -> None:
    play.worker("old", started_at="2026-01-01")
    spent, unknown = [[play.due(-7200, **columns) for _ in range(2)] for columns in ({"attempts": 5}, {"type": "u"})]
    left_out = {"except_jobs": [spent[0], unknown[0]]}

    assert play.ids("claim_spent_jobs", holder="me", limit=9, **left_out) == spent[1:]
    assert play.ids("claim_unknown_jobs", holder="me", after=timedelta(hours=1), limit=9, **left_out) == unknown[1:]


@plays("promote_due_jobs", "list_due_jobs")
def a_promotion_passes_by_the_jobs_that_were_refused(play: Play) -> None:
    refused, free = play.due(60), play.due(60)
    make_due(play, refused, free)

    assert play.ids("list_due_jobs", queues=["q"], limit=9, except_jobs=[refused]) == [free]
    play.run("promote_due_jobs", queues=["q"], limit=9, except_worker="", except_jobs=[refused])
    assert [play.status(refused), play.status(free)] == ["scheduled", "pending"]


@plays("list_claimable_jobs")
def what_is_due_of_served_unpaused_queues_is_claimable(play: Play) -> None:
    play.paused("held")
    play.add("queues", name="q", paused=False)
    play.job(queue="held")
    play.job(queue="other")
    play.job(type="unknown")
    play.due(60)
    play.running()
    play.job(status="waiting", waiting_for="flow")
    suspect, *jobs = play.job(suspect=True), play.job(), play.job()
    early = play.job()
    play.database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    play.database.run("UPDATE jobs SET not_before = now() + interval '1 hour' WHERE id = %s", early)
    play.database.run("ALTER TABLE jobs ENABLE TRIGGER USER")

    assert play.ids("list_claimable_jobs", **SERVED, suspect=False, limit=9) == jobs
    assert play.ids("list_claimable_jobs", **SERVED, suspect=False, limit=1) == jobs[:1]
    assert play.ids("list_claimable_jobs", **SERVED, suspect=True, limit=9) == [suspect]
    both = {"queues": ["q", "other"], "job_types": ["t"]}
    assert len(play.ids("list_claimable_jobs", **both, suspect=False, limit=1)) == 1


@plays("claim_listed_jobs")
def listed_jobs_are_claimed_unless_somebody_has_them(play: Play) -> None:
    taken, free, other = play.running(worker="neighbour"), play.job(), play.job()

    assert play.ids("claim_listed_jobs", ids=[taken, free], worker_id="me") == [free]
    assert play.values("SELECT locked_by FROM jobs ORDER BY id") == ["neighbour", "me", None]
    assert play.status(other) == "pending"


@plays("list_due_jobs")
def what_is_scheduled_and_due_in_the_asked_queues_is_listed(play: Play) -> None:
    elsewhere, *due = play.due(60, queue="other"), play.due(60), play.due(60)
    held, running = play.job(status="waiting", waiting_for="flow"), play.running()
    make_due(play, elsewhere, held, running, *due)
    play.due(60)
    play.job()

    assert play.ids("list_due_jobs", queues=["q"], limit=9) == due
    assert len(play.ids("list_due_jobs", queues=["q"], limit=1)) == 1
    assert len(play.ids("list_due_jobs", queues=["q", "other"], limit=1)) == 1


for name in ("list_due_jobs", "list_claimable_jobs"):
    spared(name, "LIMIT %(limit)s", because="the one around all queues decides; this one spares the planner a sort")


@plays("promote_listed_jobs")
def listed_jobs_become_pending_unless_somebody_runs_them(play: Play) -> None:
    listed, other, running = play.due(60), play.due(60), play.running()
    make_due(play, listed, other)
    play.run("promote_listed_jobs", ids=[listed, running])

    assert [play.status(job) for job in (listed, other, running)] == ["pending", "scheduled", "running"]


# Where two sessions meet


@meets("list_claimable_jobs", "list_due_jobs", "list_locked_jobs")
def lists_wait_for_nobody(play: Play) -> None:
    pending, due = [play.job(), play.job()], [play.due(60), play.due(60)]
    make_due(play, *due)
    a, b = play.cast["a"].conn, play.cast["b"].conn
    a.execute("BEGIN")
    a.execute("SELECT FROM jobs WHERE id = ANY (%s) FOR KEY SHARE", ([pending[0], due[0]],))
    b.execute(f"SET lock_timeout = '{LOCK_LIMIT}'")

    def listed(name: str, **params: object) -> list[object]:
        try:
            with b.transaction(force_rollback=True):
                return [row["id"] for row in run_on(b, play.text(name), params)]
        except psycopg.errors.LockNotAvailable:
            raise AssertionError(f"{name} waits for a locked row") from None

    assert listed("list_claimable_jobs", **SERVED, suspect=False, limit=9) == pending[1:]
    assert listed("list_due_jobs", queues=["q"], limit=9) == due[1:]
    assert listed("list_locked_jobs", ids=[*pending, due[0], 999]) == [pending[0], due[0]]
    a.execute("ROLLBACK")
    assert listed("list_locked_jobs", ids=[*pending, *due]) == []
    with b.transaction(force_rollback=True):
        run_on(b, play.text("list_locked_jobs"), {"ids": pending})
        assert play.values("SELECT id FROM jobs FOR UPDATE SKIP LOCKED") == due, "only what was asked for is locked"


@plays("list_locked_jobs")
def a_job_that_nobody_has_locked_or_that_is_gone_is_not_listed(play: Play) -> None:
    assert play.ids("list_locked_jobs", ids=[play.job(), 999]) == []


def random_text(play: Play, length: int) -> str:
    """Nothing in it is repeated: it is stored as it is."""
    digits = play.values(f"SELECT left(string_agg(md5(n::text), ''), {length}) FROM generate_series(1, 999) AS n")[0]
    return str(digits)


@plays("claim_jobs", "claim_listed_jobs")
def a_worker_leaves_large_data_behind(play: Play) -> None:
    texts = {
        "small": "x",
        "dense": "x" * 3000,
        "middle": random_text(play, 5000),
        "large": random_text(play, 12_000),
        "very dense": "x" * 300_000,
    }
    jobs = {play.job(payload={"type": "t", "data": text}): name for name, text in texts.items()}
    asked = {"queue": "q", "worker_id": "me", "limit": 9, "job_types": ["t"], "is_thorough": True}

    def left(name: str, **params: object) -> set[str]:
        rows = play.run(name, **params)
        play.database.run("UPDATE jobs SET locked_by = NULL, locked_at = NULL")
        assert all(row["data"] in {"", f'"{texts[jobs[row["id"]]]}"'} for row in rows)
        return {jobs[row["id"]] for row in rows if not row["data"]}

    assert left("claim_jobs", **asked, lease=None, **stretch_arrays([WHOLE_QUEUE])) == {"large", "very dense"}
    assert left("claim_jobs", **asked, lease=timedelta(minutes=1), **stretch_arrays([WHOLE_QUEUE])) == set()
    assert left("claim_listed_jobs", ids=list(jobs), worker_id="me") == {"large"}
