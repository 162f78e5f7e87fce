"""What the sessions of a script can do, each in the words of the product's own statements; answers are short texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import timedelta
from random import Random
from typing import Any

import psycopg

from pgq_core.domain.decision import FailureKind, decide_after_failure
from pgq_core.queries.claims import BuriedJob, FinishedJob, RescheduledJob
from pgq_core.queries.orphans import OrphanRow
from pgq_core.sql import query_text
from tests.guards.play import composed, run_on
from tests.support.actors import Actor

Verb = Callable[..., str]
VERBS: dict[str, Verb] = {}

INSTANT = timedelta(microseconds=1)
NOTHING = timedelta(0)


def verb(name: str) -> Callable[[Verb], Verb]:
    def register(function: Verb) -> Verb:
        VERBS[name] = _with_errors_as_answers(function)
        return function

    return register


def _with_errors_as_answers(function: Verb) -> Verb:
    def act(actor: Actor, *args: str) -> str:
        try:
            return function(actor, *args)
        except psycopg.Error as error:
            return f"error {error.sqlstate}"

    return act


def listed(items: Iterable[object]) -> str:
    return " ".join(str(item) for item in items) or "nothing"


def rows(actor: Actor, statement: str, *params: object) -> list[dict[str, Any]]:
    return actor.conn.execute(statement, params).fetchall()


# Transactions


@verb("begin")
def begin(actor: Actor) -> str:
    actor.conn.execute("BEGIN")
    return "begun"


@verb("commit")
def commit(actor: Actor) -> str:
    actor.conn.execute("COMMIT")
    return "committed"


@verb("rollback")
def rollback(actor: Actor) -> str:
    actor.conn.execute("ROLLBACK")
    return "rolled back"


# Producers


@verb("enqueue")
def enqueue(actor: Actor, key: str | None = None) -> str:
    (row,) = rows(actor, "SELECT enqueue('t', queue => 'q', idempotency_key => %s) AS id", key)
    return str(row["id"])


@verb("schedule")
def schedule(actor: Actor) -> str:
    """A job that is due already, but that nobody has promoted yet."""
    (row,) = rows(actor, "SELECT enqueue('t', queue => 'q', not_before => clock_timestamp() + interval '250 ms') AS id")
    actor.conn.execute("SELECT pg_sleep(0.3)")
    return str(row["id"])


@verb("insert")
def insert(actor: Actor, key: str) -> str:
    statement = """INSERT INTO jobs (queue, payload, idempotency_key) VALUES ('q', '{"type": "t", "data": {}}', %s)
                   ON CONFLICT (idempotency_key) DO NOTHING RETURNING id"""
    return listed(row["id"] for row in rows(actor, statement, key))


@verb("batch")
def batch(actor: Actor, *keys: str) -> str:
    """Keys in the caller's order; per item new or old."""
    columns: dict[str, list[Any]] = {
        "queues": ["q" for _ in keys],
        "payloads": [json.dumps({"type": "t", "data": {}}) for _ in keys],
        "priorities": [0 for _ in keys],
        "max_attempts": [5 for _ in keys],
        "keys": list(keys),
    }
    empty = [None] * len(keys)
    columns |= dict.fromkeys(("delays", "not_befores", "timeouts", "trace_contexts"), empty)
    answers = run_on(actor.conn, composed(query_text("enqueue_jobs")), dict(columns))
    return listed("new" if row["created"] else "old" if row["id"] else "unknown" for row in answers)


# Workers


@verb("claim")
def claim(actor: Actor, limit: str = "1", queue: str = "q") -> str:
    statement = actor.queries.claim_jobs(
        queue=queue, worker_id=actor.name, limit=int(limit), job_types=["t"], lease=timedelta(minutes=5)
    )
    found = statement.fetch_all_sync(actor.conn)
    actor.tokens |= {row.id: row.claim_token for row in found}
    return listed(row.id for row in found)


@verb("finish")
def finish(actor: Actor, *ids: str) -> str:
    jobs = [FinishedJob(int(job), actor.tokens[int(job)], None, None) for job in ids]
    return listed(sorted(actor.queries.finish_jobs(jobs, worker_id=actor.name, slot=0).fetch_all_sync(actor.conn)))


@verb("fail")
def fail(actor: Actor, *ids: str) -> str:
    jobs = [
        RescheduledJob(int(job), actor.tokens[int(job)], actor.name, None, None, "retried", charge=1, delay=60.0)
        for job in ids
    ]
    found = actor.queries.reschedule_jobs(jobs, slot=0).fetch_all_sync(actor.conn)
    return listed(
        f"{row.id}" if row.retry_at else f"{row.id} cancelled" for row in sorted(found, key=lambda row: row.id)
    )


@verb("die")
def die(actor: Actor, *ids: str) -> str:
    jobs = [
        BuriedJob(int(job), actor.tokens[int(job)], actor.name, None, None, "exhausted", 1, "broken") for job in ids
    ]
    found = actor.queries.bury_jobs(jobs, slot=0).fetch_all_sync(actor.conn)
    return listed(f"letter {row.dead_letter_id}" for row in found)


@verb("release")
def release(actor: Actor, *ids: str) -> str:
    claims = [(int(job), actor.tokens[int(job)]) for job in ids]
    return listed(sorted(row.id for row in actor.queries.release_jobs(claims).fetch_all_sync(actor.conn)))


@verb("extend")
def extend(actor: Actor, job: str) -> str:
    statement = actor.queries.extend_lease(id=int(job), token=actor.tokens[int(job)], lease=timedelta(minutes=5))
    return "extended" if statement.fetch_all_sync(actor.conn) else "nothing"


# Recovery, promotion, retention


@verb("expire")
def expire(actor: Actor, *ids: str) -> str:
    """Lets the lease of these jobs be over."""
    numbers = [int(job) for job in ids]
    actor.conn.execute("UPDATE jobs SET lease_until = now() - interval '1 s' WHERE id = ANY (%s)", (numbers,))
    return "expired"


@verb("reap")
def reap(actor: Actor) -> str:
    with actor.conn.transaction():
        return _give_back(
            actor, actor.queries.lock_lost_jobs(stale_limit=INSTANT, limit=100).fetch_all_sync(actor.conn)
        )


@verb("bury-worker")
def bury_worker(actor: Actor, worker: str) -> str:
    """What a keeper does when it has seen the end of its runner."""
    with actor.conn.transaction():
        return _give_back(actor, actor.queries.lock_claims_of_worker(worker_id=worker).fetch_all_sync(actor.conn))


def _give_back(actor: Actor, orphans: list[OrphanRow]) -> str:
    writes = [orphan.closed(_fate(orphan), error="lost", error_class=None) for orphan in orphans]
    lost = [write for write in writes if isinstance(write, RescheduledJob)]
    if lost:
        actor.queries.reschedule_jobs(lost, slot=15).fetch_all_sync(actor.conn)
    return listed(sorted(write.id for write in lost))


def _fate(orphan: OrphanRow) -> Any:
    return decide_after_failure(
        FailureKind.VANISHED,
        attempts=orphan.attempts,
        max_attempts=orphan.max_attempts,
        losses=orphan.losses,
        suspect=orphan.suspect,
        policy=orphan.policy,
        random=Random(1),
    )


@verb("promote")
def promote(actor: Actor) -> str:
    row = actor.queries.promote_due_jobs(queues=["q"], limit=100).fetch_one_sync(actor.conn)
    assert row is not None
    return str(row.promoted)


@verb("prune-letters")
def prune_letters(actor: Actor) -> str:
    return str(actor.queries.prune_dead_letters(kept=-timedelta(minutes=1), limit=100).execute_sync(actor.conn))


@verb("prune-keys")
def prune_keys(actor: Actor) -> str:
    return str(actor.queries.prune_keys(limit=100).execute_sync(actor.conn))


@verb("sum-stats")
def sum_stats(actor: Actor) -> str:
    """Sums up what was counted until now, and prunes it."""
    return str(actor.queries.prune_stats(kept=-timedelta(minutes=1), limit=100).execute_sync(actor.conn))


@verb("drop-day")
def drop_day(actor: Actor) -> str:
    (row,) = rows(actor, "SELECT drop_run_partition((now() AT TIME ZONE 'UTC')::date - 1) AS name")
    return "dropped" if row["name"] else "nothing"


@verb("old-day")
def old_day(actor: Actor) -> str:
    """A partition of ten days ago."""
    actor.conn.execute(
        "SELECT ensure_run_partitions((now() AT TIME ZONE 'UTC')::date - 10, (now() AT TIME ZONE 'UTC')::date - 10)"
    )
    return "made"


@verb("claimed-long-ago")
def claimed_long_ago(actor: Actor, job: str) -> str:
    actor.conn.execute("UPDATE jobs SET locked_at = now() - interval '10 days' WHERE id = %s", (int(job),))
    return "moved"


@verb("end-window")
def end_window(actor: Actor, key: str) -> str:
    actor.conn.execute("UPDATE job_keys SET expires_at = now() - interval '1 s' WHERE key = %s", (key,))
    return "over"


# Operators


@verb("cancel")
def cancel(actor: Actor, *ids: str) -> str:
    return listed(row.answer for row in actor.queries.cancel_jobs([int(job) for job in ids]).fetch_all_sync(actor.conn))


@verb("replay")
def replay(actor: Actor, *ids: str) -> str:
    statement = actor.queries.replay_dead_letters([int(one) for one in ids], operator=actor.name, spread=NOTHING)
    return listed("refused" if row.refusal else f"job {row.job_id}" for row in statement.fetch_all_sync(actor.conn))


@verb("discard")
def discard(actor: Actor, *ids: str) -> str:
    statement = actor.queries.discard_dead_letters([int(one) for one in ids], operator=actor.name)
    return listed("refused" if row.refusal else "discarded" for row in statement.fetch_all_sync(actor.conn))


@verb("undo")
def undo(actor: Actor, resolution: str, by: str, *ids: str) -> str:
    statement = actor.queries.undo_resolutions([int(one) for one in ids], resolution=resolution, operator=by)
    return listed("refused" if row.refusal else "undone" for row in statement.fetch_all_sync(actor.conn))


@verb("edit")
def edit(actor: Actor, letter: str, data: str) -> str:
    payload = json.dumps({"type": "t", "data": data})
    return (
        "edited"
        if actor.queries.edit_dead_letter(int(letter), payload=payload).fetch_all_sync(actor.conn)
        else "nothing"
    )


@verb("pause")
def pause(actor: Actor, queue: str = "q") -> str:
    rows(actor, "SELECT pause(%s)", queue)
    return "paused"


@verb("resume")
def resume(actor: Actor, queue: str = "q") -> str:
    rows(actor, "SELECT resume(%s)", queue)
    return "resumed"


@verb("move")
def move(actor: Actor, queue: str, *ids: str) -> str:
    found = actor.queries.move_jobs({int(job): queue for job in ids}).fetch_all_sync(actor.conn)
    return listed("left" if row.status == "running" else "moved" for row in found)


# Looks


@verb("jobs")
def jobs(actor: Actor) -> str:
    return listed(f"{row['id']} {row['status']}" for row in rows(actor, "SELECT id, status FROM jobs ORDER BY id"))


@verb("runs")
def runs(actor: Actor) -> str:
    found = rows(actor, "SELECT job_id, outcome FROM job_runs ORDER BY job_id, id")
    return listed(f"{row['job_id']} {row['outcome']}" for row in found)


@verb("letters")
def letters(actor: Actor) -> str:
    found = rows(actor, "SELECT id, coalesce(resolution, 'open') AS state FROM dead_letter_jobs ORDER BY id")
    return listed(f"{row['id']} {row['state']}" for row in found)


@verb("data")
def data(actor: Actor, job: str) -> str:
    return listed(row["data"] for row in rows(actor, "SELECT payload ->> 'data' AS data FROM jobs WHERE id = %s", job))


@verb("counted")
def counted(actor: Actor) -> str:
    (row,) = rows(actor, "SELECT coalesce(sum(succeeded + retried + dead + lost + cancelled), 0) AS n FROM job_stats")
    return str(row["n"])


@verb("key")
def key(actor: Actor, name: str) -> str:
    statement = """SELECT job_id, CASE WHEN expires_at IS NULL THEN 'live' WHEN expires_at = 'infinity' THEN 'held'
                                       WHEN expires_at > now() THEN 'kept' ELSE 'over' END AS state
                     FROM job_keys WHERE key = %s"""
    return listed(f"{row['job_id']} {row['state']}" for row in rows(actor, statement, name))
