"""Behind PgBouncer in transaction mode: every statement may meet another server session."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from psycopg import Connection
from psycopg.rows import DictRow

from pgq_core import AsyncJobQueue, JobQueue
from pgq_core.errors import InvalidSettings
from tests.queue.rows import value
from tests.support.pooler import pooler_before

pytestmark = pytest.mark.pooler


@pytest.fixture
def pooled_dsn(dsn: str, home: Path) -> Iterator[str]:
    with pooler_before(dsn, home) as pooled:
        yield pooled


def test_session_settings_behind_a_pooler_are_refused_with_the_remedy(pooled_dsn: str) -> None:
    with JobQueue(pooled_dsn) as queue, pytest.raises(InvalidSettings, match="pass prepare=False"):
        queue.enqueue("t")


def test_many_threads_enqueue_claim_and_finish(pooled_dsn: str, conn: Connection[DictRow]) -> None:
    with JobQueue(pooled_dsn, prepare=False) as queue, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda n: queue.enqueue("t", n % 20, idempotency_key=f"k{n % 20}"), range(200)))
        queue.enqueue_many([("t", n) for n in range(100)])

        def finish_all(_: int) -> None:
            while jobs := queue.claim("default", 7):
                for job in jobs:
                    queue.complete(job, job.data)

        list(threads.map(finish_all, range(4)))

        assert sum(answer.created for answer in answers) == 20
        assert queue.result(answers[0].id) == 0
    assert value(conn, "SELECT count(*) FROM job_runs") == 120


async def test_the_asynchronous_queue_works_too(pooled_dsn: str) -> None:
    async with AsyncJobQueue(pooled_dsn, prepare=False) as queue:
        job = await queue.enqueue("t", idempotency_key="k")
        await queue.complete((await queue.claim())[0], "done")

        assert await queue.result(job.id) == "done"
