"""Where a run takes place: a database, a fleet, a load, and the judge who has the last word."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from pgq_core.bench.open_loop import OpenLoop
from pgq_core.bench.schedule import Schedule
from pgq_core.database import connect_sync
from pgq_core.errors import PgqError
from pgq_core.job_queue import JobQueue, JobRequest
from pgq_core.queries import Queries
from pgq_core.queries.lists import ABOVE_ALL_IDS
from tests.conftest import SCHEMA
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually
from tests.torture import form
from tests.torture.faults import Injected, repeatedly
from tests.torture.fleet import APP, SETTINGS, Fleet
from tests.torture.invariants import Violation, violations
from tests.torture.ledger import Ledger
from tests.torture.offering import Offering, offering
from tests.torture.report import RunReport, publish
from tests.torture.timeline import Timeline

UNTOUCHED = "-c statement_timeout=0 -c lock_timeout=0 -c default_transaction_read_only=off"
"""The judge's own session does not take part in what is done to the server's settings."""
BATCH = 500
OFFERS_PER_SECOND = 10
FINISHED = """
SELECT extract(epoch FROM finished_at)::double precision AS at
  FROM job_runs
 WHERE outcome IN ('succeeded', 'dead', 'retried')
"""
LEFT = """
SELECT id, job_type, status, attempts, losses, suspect, locked_by, locked_at, not_before, last_error
  FROM jobs
 ORDER BY id
 LIMIT 5
"""
WAIT = """
SELECT coalesce(max(extract(epoch FROM started_at - greatest(due_at, enqueued_at))), 0)::double precision
  FROM job_runs
 WHERE attempt = 1
   AND outcome = 'succeeded'
   AND started_at >= to_timestamp(%s)
"""
STARTED = """
SELECT extract(epoch FROM started_at)::double precision AS at
  FROM job_runs
 WHERE started_at >= to_timestamp(%s)
"""


class Arena:
    """One run. `accepted` are the ids that the queue said it took: the list that nothing may be missing from."""

    def __init__(self, dsn: str, directory: Path) -> None:
        self.dsn = dsn
        self.directory = directory
        self.database = QueueDatabase(make_conninfo(dsn, options=UNTOUCHED))
        self.ledger = Ledger(directory / "ledger")
        self.accepted: list[int] = []
        self.fleets: list[Fleet] = []
        self.begun = time.time()

    def fleet(
        self,
        workers: int,
        concurrency: int,
        *,
        dsn: str | None = None,
        host: str = "torture",
        app: str = APP,
        **settings: Any,
    ) -> Fleet:
        fleet = Fleet(
            self.database,
            dsn or self.dsn,
            self.ledger.path,
            self.directory / host,
            workers,
            concurrency,
            settings=settings,
            host=host,
            app=app,
        )
        self.fleets.append(fleet)
        return fleet

    # Load

    def enqueue(self, job_type: str, data: object = None, *, count: int = 1, **options: Any) -> list[int]:
        return self.enqueue_each([JobRequest(job_type, data, **options) for _ in range(count)])

    def enqueue_each(self, requests: Iterable[JobRequest]) -> list[int]:
        waiting = list(requests)
        ids: list[int] = []
        with JobQueue(self.dsn) as queue:
            for first in range(0, len(waiting), BATCH):
                ids += [job.id for job in queue.enqueue_many(waiting[first : first + BATCH])]
        self.accepted += ids
        return ids

    @contextlib.contextmanager
    def offered(self, job_type: str, data: object, *, per_second: float) -> Iterator[Injected]:
        """A producer that offers jobs at a rate, whatever becomes of them. What is refused was not accepted."""
        size, random = max(round(per_second / OFFERS_PER_SECOND), 1), Random(2)
        interval = size / per_second
        with JobQueue(self.dsn) as queue:

            def offer() -> bool:
                requests = [JobRequest(job_type, data, priority=random.randint(0, 2)) for _ in range(size)]
                try:
                    self.accepted += [job.id for job in queue.enqueue_many(requests)]
                except (PgqError, psycopg.Error):
                    return False
                return True

            with repeatedly(interval, offer) as offers:
                yield offers

    @contextlib.contextmanager
    def scheduled(self, job_type: str, data: object, schedule: Schedule) -> Iterator[Offering]:
        """Producers that keep to a schedule, whatever becomes of their jobs; at the end all of it is sent."""
        with offering(self.dsn, self.directory, job_type, data, schedule) as load:
            yield load
        self.accepted += load.ids

    def holds(self, job_type: str, data: object, schedule: Schedule) -> bool:
        """Whether workers and producers together keep up with it, by the rule of `pgq-core bench`."""
        with self.scheduled(job_type, data, schedule) as load:
            pass
        self.until_done(300)
        rows = self.database.connection().execute(STARTED, (load.started_at,))
        return OpenLoop(schedule, load.started_at, (), load.backlog(Timeline(row["at"] for row in rows))).holds

    def begin(self) -> None:
        """What happened until now was preparation: length and waits of the run count from here."""
        self.begun = time.time()

    def call_off(self) -> None:
        """Cancels what nobody has begun: a backlog that was there only so that there is always work."""
        queries = Queries(SCHEMA)
        with connect_sync(self.dsn, application_name="pgq operator") as conn:
            for status in ("pending", "scheduled"):
                purge = queries.purge_jobs(queue="default", status=status, max_id=ABOVE_ALL_IDS, limit=BATCH)
                while purge.fetch_all_sync(conn):
                    pass

    def until_done(self, timeout: float) -> float:
        """Until nothing is left to do; answers the time at which that was so."""
        deadline = time.monotonic() + timeout
        while left := self.database.all(LEFT):
            assert time.monotonic() < deadline, f"still there after {timeout:g} s: {left}"
            time.sleep(0.1)
        return time.time()

    def until_finished(self, count: int, timeout: float = 120.0) -> None:
        """So many runs have ended."""
        query = "SELECT count(*) AS n FROM (SELECT FROM job_runs LIMIT %s) AS r"
        eventually(lambda: self.database.value(query, count) == count, timeout=timeout, interval=0.1)

    # Judgement

    def timeline(self) -> Timeline:
        return Timeline(row["at"] for row in self.database.connection().execute(FINISHED))

    def violations(self) -> list[Violation]:
        conn = self.database.connection()
        conn.execute("TRUNCATE torture.accepted")
        with conn.cursor().copy("COPY torture.accepted FROM STDIN") as copy:
            for job_id in self.accepted:
                copy.write_row((job_id,))
        self.ledger.store(conn)
        conn.execute("ANALYZE torture.accepted, torture.ledger, jobs, job_runs")  # a million rows since the last one
        patience = (
            max((SETTINGS | fleet.settings)["stale_limit"] + 5.0 for fleet in self.fleets) if self.fleets else 5.0
        )
        return violations(conn, patience=patience)

    def judge(
        self,
        run: str,
        load: str,
        faults: str,
        *,
        back_after: float | None = None,
        **figures: float | int | str,
    ) -> RunReport:
        """Asks every question and publishes the line; a run that lost anything fails here."""
        found = self.violations()
        counts = {violation.invariant: violation.count for violation in found}
        report = RunReport(
            run=run,
            load=load,
            seconds=time.time() - self.begun,
            faults=faults,
            lost=counts.get("accepted_job_is_nowhere", 0),
            overlaps=counts.get("overlapping_accepted_runs", 0),
            worst_wait=self.database.value(WAIT, self.begun),
            back_after=back_after,
            figures={name.replace("_", " "): value for name, value in figures.items()},
        )
        publish(report, form=form.NAME)
        assert not found, "\n".join(map(str, found))
        return report

    def close(self) -> None:
        for fleet in self.fleets:
            fleet.end()
        self.database.close()
