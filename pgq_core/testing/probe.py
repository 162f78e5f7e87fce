"""Looking at a queue and moving its time: what both kinds of queue under test have in common."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from psycopg import Connection

from pgq_core.database import connect_sync
from pgq_core.domain.job import Job, JobStatus
from pgq_core.handlers import Handler
from pgq_core.queries import Statement
from pgq_core.testing.expectations import ANY, complaint, expected
from pgq_core.testing.statements import TestingStatements


class Probe:
    """`dsn` and `schema` say where the tables are. Looks through a connection of its own, or one that is given."""

    __test__ = False

    def __init__(self, dsn: str, schema: str) -> None:
        self.dsn = dsn
        self.schema = schema
        self._statements = TestingStatements(schema)
        self._looking: Connection[Any] | None = None

    def enqueued(
        self,
        job_type: Handler[..., Any] | str | None = None,
        *,
        queue: str | None = None,
        conn: Connection[Any] | None = None,
    ) -> list[Job]:
        """The live jobs, in the order of their enqueue. `conn`: as its transaction sees them."""
        name = job_type.type if isinstance(job_type, Handler) else job_type
        jobs = self._fetched(self._statements.list_enqueued(job_type=name, queue=queue), conn)
        return [replace(job, status=JobStatus(job.status)) for job in jobs]

    def assert_enqueued(
        self,
        job_type: Handler[..., Any] | str,
        *,
        data: object = ANY,
        queue: str | None = None,
        count: int | None = None,
        conn: Connection[Any] | None = None,
    ) -> Job:
        """A live job of this type is there, with exactly this data if any is given; `count`: just so many such jobs.

        Answers the first.
        """
        wanted = expected(job_type, data=data, queue=queue)
        jobs = self.enqueued(conn=conn)
        found = [job for job in jobs if wanted.matches(job)]
        if not found or count not in (None, len(found)):
            raise AssertionError(complaint(wanted, count, len(found), jobs))
        return found[0]

    def assert_not_enqueued(
        self,
        job_type: Handler[..., Any] | str,
        *,
        data: object = ANY,
        queue: str | None = None,
        conn: Connection[Any] | None = None,
    ) -> None:
        wanted = expected(job_type, data=data, queue=queue)
        jobs = self.enqueued(conn=conn)
        found = sum(wanted.matches(job) for job in jobs)
        if found:
            raise AssertionError(complaint(wanted, 0, found, jobs))

    def travel(self, seconds: float | timedelta) -> None:
        """Lets so much time pass for due times, leases and the windows of keys. Nothing sleeps."""
        span = seconds if isinstance(seconds, timedelta) else timedelta(seconds=seconds)
        if span < timedelta(0):
            raise ValueError("time goes forward only")
        self._fetched(self._statements.travel(span), None)

    def empty(self) -> None:
        """Removes every job, run, dead letter, key and setting of a queue."""
        self._statements.empty_tables().execute_sync(self._connection())

    def stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.close()

    def _fetched(self, statement: Statement[Any], conn: Connection[Any] | None) -> list[Any]:
        return statement.fetch_all_sync(self._connection() if conn is None else conn)

    def _connection(self) -> Connection[Any]:
        if self._looking is None or self._looking.closed:
            self._looking = connect_sync(self.dsn, application_name="pgq testing")
        return self._looking
