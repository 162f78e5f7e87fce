"""A job's life as a machine: any sequence of what producers, workers, keepers, operators and time can do to it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pgq_core.domain.decision import Decision, FailureKind, Reschedule, decide_after_failure
from pgq_core.domain.job import Outcome
from pgq_core.domain.retry import RetryPolicy
from pgq_core.queries import Queries
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.queries.orphans import OrphanRow
from tests.conftest import SCHEMA
from tests.support.queue_database import QueueDatabase, Row
from tests.torture.invariants import NAMES, violations

QUERIES = Queries(SCHEMA)
INSTANT = timedelta(microseconds=1)
ASKED_OTHERWISE = {"success_without_an_effect", "statistics_that_disagree_with_runs"}
PROVEN = tuple(name for name in NAMES if name not in ASKED_OTHERWISE)
"""The questions of the torture tests. These jobs have no effects, and some end without having run: see below."""

FAULTS = """
WITH job AS (
    SELECT id, idempotency_key, 'live' AS place FROM jobs
     UNION ALL
    SELECT original_job_id, NULL, 'dead' FROM dead_letter_jobs
     UNION ALL
    SELECT job_id, NULL, 'ended' FROM job_runs WHERE outcome IN ('succeeded', 'cancelled', 'discarded', 'expired')
)
SELECT 'in ' || count(*) || ' places' AS fault, id FROM job GROUP BY id HAVING count(*) > 1
UNION ALL
SELECT 'nowhere', a.job_id FROM torture.accepted a WHERE NOT EXISTS (SELECT FROM job WHERE job.id = a.job_id)
UNION ALL
SELECT 'attempts and runs differ', j.id
  FROM jobs j
  LEFT JOIN LATERAL (SELECT count(*) FILTER (WHERE outcome = 'retried') AS retried,
                            count(*) FILTER (WHERE outcome = 'lost') AS lost
                       FROM job_runs r
                      WHERE r.job_id = j.id) run ON true
 WHERE j.attempts NOT BETWEEN run.retried AND run.retried + run.lost
UNION ALL
SELECT 'statistics and runs differ: ' || outcome || ' ' || coalesce(counted, 0), runs
  FROM (SELECT unnest(ARRAY['succeeded', 'retried', 'dead', 'lost', 'released', 'snoozed', 'cancelled',
                            'discarded']) AS outcome,
               unnest(ARRAY[sum(succeeded), sum(retried), sum(dead), sum(lost), sum(released), sum(snoozed),
                            sum(cancelled), sum(discarded)]) AS counted
          FROM job_stats) s
 CROSS JOIN LATERAL (SELECT count(*) AS runs FROM job_runs r WHERE r.outcome = s.outcome) r
 WHERE runs <> coalesce(counted, 0)
UNION ALL
SELECT 'losses and lost runs differ', j.id
  FROM jobs j
 WHERE j.losses > (SELECT count(*) FROM job_runs r WHERE r.job_id = j.id AND r.outcome = 'lost')
UNION ALL
SELECT 'an attempt has two accepted ends', job_id
  FROM job_runs
 WHERE outcome IN ('succeeded', 'retried', 'dead') AND attempt > 0
 GROUP BY job_id, attempt
HAVING count(*) > 1
UNION ALL
SELECT 'a live job without its key', j.id
  FROM jobs j
  LEFT JOIN job_keys k ON k.key = j.idempotency_key
 WHERE j.idempotency_key IS NOT NULL AND (k.job_id, k.expires_at IS NULL) IS DISTINCT FROM (j.id, true)
UNION ALL
SELECT 'a key that nobody holds', k.job_id
  FROM job_keys k
 WHERE (k.expires_at IS NULL AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = k.job_id AND j.idempotency_key = k.key))
    OR (k.expires_at = 'infinity' AND NOT EXISTS (SELECT FROM dead_letter_jobs d
                                                   WHERE d.original_job_id = k.job_id AND d.resolution IS NULL))
UNION ALL
SELECT 'a replay without its job', d.id
  FROM dead_letter_jobs d
 WHERE d.resolution = 'replayed' AND NOT EXISTS (SELECT FROM job WHERE job.id = d.replayed_job_id)
UNION ALL
SELECT 'a scheduled job that is hidden from the promoter', id
  FROM jobs
 WHERE status = 'pending' AND not_before > now() + interval '1 second'
"""
"""Asked after every step; any row is a fault."""

RECORDS = """
SELECT (SELECT count(*) FROM job_runs) AS runs,
       (SELECT count(*) FROM dead_letter_jobs) AS letters,
       (SELECT sum(succeeded + dead) FROM job_stats) AS ends
"""
FAILURES = [
    FailureKind.ERROR,
    FailureKind.TIMEOUT,
    FailureKind.NON_RETRYABLE,
    FailureKind.CRASH,
    FailureKind.CRASH_AMONG_OTHERS,
]
WORKERS = ("w1", "w2", "w3")
LETTERS = st.integers(1, 8)


class JobLife(RuleBasedStateMachine):
    """Every claim is remembered for ever, so that any worker may come back late with any outcome."""

    def __init__(self, database: QueueDatabase) -> None:
        super().__init__()
        self.database = database
        self.conn: Any = database.connection()
        self.claims: list[ClaimedRow] = []
        self.random = Random(7)

    @initialize()
    def begin(self) -> None:
        self.database.empty()
        self.database.run("TRUNCATE torture.accepted, torture.ledger")
        for worker in WORKERS:
            self._register(worker)

    def _register(self, worker: str) -> None:
        self.database.run(
            "INSERT INTO workers (id, host, queues, concurrency, state) VALUES (%s, 'h', '{q}', 1, 'running') "
            "ON CONFLICT (id) DO UPDATE SET stopped_at = NULL, state = 'running', heartbeat_at = now()",
            worker,
        )

    # Producers

    @rule(
        key=st.sampled_from([None, "a", "b"]),
        max_attempts=st.integers(1, 3),
        priority=st.integers(-1, 1),
        delay=st.sampled_from([0, 0, 0, 3600]),
    )
    def enqueue(self, key: str | None, max_attempts: int, priority: int, delay: int) -> None:
        before = self._live_holder(key)
        job_id = self.database.value(
            "SELECT enqueue('t', queue => 'q', idempotency_key => %s, max_attempts => %s, priority => %s, "
            "not_before => now() + make_interval(secs => %s))",
            key, max_attempts, priority, delay,
        )  # fmt: skip
        if before is not None:
            assert job_id == before, "a duplicate is told the job that lives"
        if not self.database.all("SELECT FROM torture.accepted WHERE job_id = %s", job_id):
            self.database.run("INSERT INTO torture.accepted VALUES (%s)", job_id)

    def _live_holder(self, key: str | None) -> int | None:
        rows = self.database.all("SELECT id FROM jobs WHERE idempotency_key = %s", key)
        return rows[0]["id"] if rows else None

    # Workers

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 3), leased=st.booleans())
    def claim(self, worker: str, limit: int, leased: bool) -> None:
        lease = timedelta(minutes=5) if leased else None
        statement = QUERIES.claim_jobs(queue="q", worker_id=worker, limit=limit, job_types=["t"], lease=lease)
        rows = statement.fetch_all_sync(self.conn)
        known = {(claim.id, claim.claim_token) for claim in self.claims}
        assert not known & {(row.id, row.claim_token) for row in rows}, "a token is new at each claim"
        assert all(row.attempts < row.max_attempts for row in rows)
        if rows:
            self._register(worker)
        self.claims += rows

    @rule(worker=st.sampled_from(WORKERS))
    def claim_a_suspect(self, worker: str) -> None:
        rows = QUERIES.claim_suspect_job(queues=["q"], worker_id=worker, job_types=["t"]).fetch_all_sync(self.conn)
        assert len(rows) <= 1
        if rows:
            self._register(worker)
        self.claims += rows

    @precondition(lambda self: self.claims)
    @rule(
        data=st.data(), kind=st.sampled_from(["complete", "cancelled", "discarded", "snooze", "release", "hand back"])
    )
    def end_well(self, data: st.DataObject, kind: str) -> None:
        claim = self._some_claim(data)
        match kind:
            case "complete" | "cancelled" | "discarded":
                outcome = "succeeded" if kind == "complete" else kind
                job = FinishedJob(claim.id, claim.claim_token, None, None, outcome)
                self._write(claim, lambda: QUERIES.finish_jobs([job], worker_id="w1", slot=0).fetch_all_sync(self.conn))
            case "hand back":
                self.hand_back(claim)
            case _:
                outcome, delay = ("snoozed", 600.0) if kind == "snooze" else ("released", None)
                self._reschedule(claim, Reschedule(_outcome(outcome), charge=0, delay=delay))

    @precondition(lambda self: self.claims)
    @rule(
        data=st.data(),
        kind=st.sampled_from(FAILURES),
    )
    def fail(self, data: st.DataObject, kind: FailureKind) -> None:
        claim = self._some_claim(data)
        decision = decide_after_failure(
            kind,
            attempts=claim.attempts,
            max_attempts=claim.max_attempts,
            losses=claim.losses,
            suspect=claim.suspect,
            policy=RetryPolicy(),
            random=self.random,
        )
        self._carry_out(claim, decision)

    def hand_back(self, claim: ClaimedRow) -> None:
        statement = QUERIES.release_jobs([(claim.id, claim.claim_token)])
        self._write(claim, lambda: statement.fetch_all_sync(self.conn))

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def extend(self, data: st.DataObject) -> None:
        claim = self._some_claim(data)
        statement = QUERIES.extend_lease(id=claim.id, token=claim.claim_token, lease=timedelta(minutes=5))
        self._write(claim, lambda: statement.fetch_all_sync(self.conn))

    def _some_claim(self, data: st.DataObject) -> ClaimedRow:
        """Any claim ever made, the latest ones more often."""
        return data.draw(st.sampled_from(self.claims[-3:] + self.claims), label="claim")

    def _carry_out(self, claim: ClaimedRow, decision: Decision) -> None:
        if isinstance(decision, Reschedule):
            self._reschedule(claim, decision)
            return
        letter = BuriedJob(claim.id, claim.claim_token, "w1", None, None, decision.reason, decision.charge, "broken")
        self._write(claim, lambda: QUERIES.bury_jobs([letter], slot=0).fetch_all_sync(self.conn))

    def _reschedule(self, claim: ClaimedRow, decision: Reschedule) -> None:
        job = RescheduledJob(
            claim.id, claim.claim_token, "w1", None, None, decision.outcome, decision.charge, decision.delay,
            "broken", loss=decision.loss, suspect=decision.suspect,
        )  # fmt: skip
        self._write(claim, lambda: QUERIES.reschedule_jobs([job], slot=0).fetch_all_sync(self.conn))

    def _write(self, claim: ClaimedRow, write: Any) -> None:
        """A write under a claim: one row while the job is still its own, else nothing, and nothing changes."""
        is_ours = bool(
            self.database.all(
                "SELECT FROM jobs WHERE id = %s AND status = 'running' AND claim_token = %s",
                claim.id,
                claim.claim_token,
            )
        )
        before = self.database.one(RECORDS)
        answer: Sequence[object] = write()
        assert len(answer) == int(is_ours)
        if not is_ours:
            assert self.database.one(RECORDS) == before, "a late write left a trace"

    # Keepers, the reaper, time

    @rule(worker=st.sampled_from(WORKERS))
    def a_worker_dies(self, worker: str) -> None:
        self.database.run("UPDATE workers SET stopped_at = now(), state = 'crashed' WHERE id = %s", worker)

    @rule()
    def leases_run_out(self) -> None:
        self.database.run("UPDATE jobs SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")

    @rule()
    def reap(self) -> None:
        with self.conn.transaction():
            orphans = QUERIES.lock_lost_jobs(stale_limit=INSTANT, limit=100).fetch_all_sync(self.conn)
            for orphan in orphans:
                self._rescue(orphan)
        assert not self.database.all(
            "SELECT j.id FROM jobs j JOIN workers w ON w.id = j.locked_by "
            "WHERE (j.lease_until IS NULL AND w.stopped_at IS NOT NULL) OR j.lease_until < now()"
        )

    def _rescue(self, orphan: OrphanRow) -> None:
        decision = decide_after_failure(
            FailureKind.VANISHED,
            attempts=orphan.attempts,
            max_attempts=orphan.max_attempts,
            losses=orphan.losses,
            suspect=orphan.suspect,
            policy=orphan.policy,
            random=self.random,
        )
        write = orphan.closed(decision, error="lost", error_class=None)
        if isinstance(write, RescheduledJob):
            assert len(QUERIES.reschedule_jobs([write], slot=15).fetch_all_sync(self.conn)) == 1
        else:
            assert len(QUERIES.bury_jobs([write], slot=15).fetch_all_sync(self.conn)) == 1

    @rule()
    def time_passes(self) -> None:
        """An hour and a half: as the rows see it, everything is that much older."""
        with self.conn.transaction():
            self.conn.execute("ALTER TABLE jobs DISABLE TRIGGER jobs_derive_status_of_changed")
            self.conn.execute(
                "UPDATE jobs SET not_before = not_before - interval '90 minutes' WHERE status = 'scheduled'"
            )
            self.conn.execute("ALTER TABLE jobs ENABLE TRIGGER jobs_derive_status_of_changed")
        self.database.run(
            "UPDATE job_keys SET expires_at = expires_at - interval '90 minutes' WHERE isfinite(expires_at)"
        )

    @rule()
    def promote(self) -> None:
        QUERIES.promote_due_jobs(queues=["q"], limit=100).fetch_all_sync(self.conn)
        assert not self.database.all("SELECT FROM jobs WHERE status = 'scheduled' AND not_before <= now()")

    @rule()
    def windows_end(self) -> None:
        self.database.run("UPDATE job_keys SET expires_at = now() - interval '1 second' WHERE isfinite(expires_at)")
        QUERIES.prune_keys(limit=100).execute_sync(self.conn)

    # Operators

    @rule(job_id=st.integers(1, 12))
    def cancel(self, job_id: int) -> None:
        (row,) = QUERIES.cancel_jobs([job_id]).fetch_all_sync(self.conn)
        status = self.database.job(job_id)
        assert row.answer == ("requested" if status else row.answer)
        assert row.answer != "cancelled" or status is None

    @rule(letters=st.lists(LETTERS, min_size=1, max_size=3))
    def replay(self, letters: list[int]) -> None:
        open_ones = self._open_letters()
        rows = QUERIES.replay_dead_letters(letters, operator="op", spread=timedelta(0)).fetch_all_sync(self.conn)
        for row in rows:
            assert (row.job_id is None) == (row.refusal is not None)
            assert row.refusal is not None or row.id in open_ones, "only an unresolved letter is replayed"

    @rule(letters=st.lists(LETTERS, min_size=1, max_size=3))
    def discard(self, letters: list[int]) -> None:
        open_ones = self._open_letters()
        rows = QUERIES.discard_dead_letters(letters, operator="op").fetch_all_sync(self.conn)
        assert all((row.refusal is None) == (row.id in open_ones) for row in rows)

    @rule(letter=LETTERS, resolution=st.sampled_from(["replayed", "discarded"]))
    def undo(self, letter: int, resolution: str) -> None:
        rows = QUERIES.undo_resolutions([letter], resolution=resolution, operator="op").fetch_all_sync(self.conn)
        assert all(row.refusal is not None or row.id in self._open_letters() for row in rows)

    def _open_letters(self) -> set[int]:
        return {row["id"] for row in self.database.all("SELECT id FROM dead_letter_jobs WHERE resolution IS NULL")}

    # What must hold after every step

    @invariant()
    def the_tables_agree(self) -> None:
        faults: list[Row] = self.database.all(FAULTS)
        assert not faults, faults

    def teardown(self) -> None:
        found = violations(self.conn, patience=3600.0, names=PROVEN)
        assert not found, [str(violation) for violation in found]


def _outcome(word: str) -> Outcome:

    return Outcome(word)
