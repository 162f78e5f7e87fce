"""An error at COMMIT comes after the rows of the answer: what was answered and did not happen is told as an error."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from pgq_core import AsyncJobQueue, JobQueue
from pgq_core.domain.job import JSON
from pgq_core.errors import PgqError
from pgq_core.handlers import Registry
from pgq_core.queries import piecemeal
from tests.support.corridors import running_corridor
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async

REFUSE = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'UPDATE' OR NEW.status = 'running' THEN
        RAISE EXCEPTION 'refused at commit' USING ERRCODE = '{code}';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER {verb} ON jobs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION refuse()"""
ALLOW = "DROP TRIGGER refuse ON jobs"
REFUSED = (PgqError, psycopg.Error)
CHECK_VIOLATION, SERIALIZATION_FAILURE = "23514", "40001"


@pytest.fixture
def database(dsn: str) -> Iterator[QueueDatabase]:
    database = QueueDatabase(dsn)
    yield database
    database.close()


@pytest.fixture
def ran() -> list[JSON]:
    return []


@pytest.fixture
def registry(ran: list[JSON]) -> Registry:
    registry = Registry()

    @registry.handler("note")
    async def note(data: JSON) -> None:
        ran.append(data)

    return registry


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("code", [CHECK_VIOLATION, SERIALIZATION_FAILURE])
def test_an_enqueue_that_does_not_commit_is_no_enqueue(database: QueueDatabase, code: str, key: str | None) -> None:
    database.run(REFUSE.format(verb="INSERT", code=code))
    with JobQueue(database.dsn, timeout=1.0) as queue:
        for _ in range(2):  # the first prepares
            with pytest.raises(REFUSED, match="refused at commit"):
                queue.enqueue("note", {}, idempotency_key=key)
        with pytest.raises(REFUSED, match="refused at commit"):
            queue.enqueue_many([("note", {}), ("note", {})])
        assert database.value("SELECT count(*) FROM jobs") == 0

        database.run(ALLOW)
        job = queue.enqueue("note", {}, idempotency_key=key)
        assert database.value("SELECT id FROM jobs") == job.id


async def test_neither_is_one_of_a_coroutine(database: QueueDatabase) -> None:
    database.run(REFUSE.format(verb="INSERT", code=CHECK_VIOLATION))
    async with AsyncJobQueue(database.dsn) as queue:
        for _ in range(2):
            with pytest.raises(REFUSED, match="refused at commit"):
                await queue.enqueue("note", {})
    assert database.value("SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize("code", [CHECK_VIOLATION, SERIALIZATION_FAILURE])
async def test_a_claim_that_does_not_commit_runs_nothing(
    database: QueueDatabase, registry: Registry, ran: list[JSON], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(piecemeal, "PASSED_BY_FOR", 1.0)
    async with running_corridor(database.dsn, registry, poll=0.1) as running:
        producer = running.corridor.producer
        await eventually_async(lambda: database.value("SELECT count(*) FROM worker_waits WHERE waiting") == 1)
        database.run(REFUSE.format(verb="UPDATE", code=code))
        database.put("note", 1)
        await eventually_async(
            lambda: producer._careful.passed_by.ids() if code == CHECK_VIOLATION else producer._pauses.failures > 1
        )
        assert ran == []

        database.run(ALLOW)
        await eventually_async(lambda: database.value("SELECT count(*) FROM jobs") == 0)
    assert ran == [1]
    assert database.value("SELECT sum(late_writes) FROM workers") in {0, None}


@pytest.mark.parametrize("code", [CHECK_VIOLATION, SERIALIZATION_FAILURE])
async def test_an_end_that_does_not_commit_is_written_again(
    database: QueueDatabase, registry: Registry, ran: list[JSON], code: str
) -> None:
    async with running_corridor(database.dsn, registry, poll=0.1) as running:
        database.run(REFUSE.format(verb="DELETE", code=code))
        database.put("note", 1)
        await eventually_async(lambda: running.corridor.completer._pauses.failures > 1 or code == CHECK_VIOLATION)
        await eventually_async(lambda: ran == [1])
        assert database.value("SELECT count(*) FROM job_runs") == 0

        database.run(ALLOW)
        await eventually_async(lambda: database.value("SELECT count(*) FROM jobs") == 0)
        await eventually_async(lambda: running.marks.finished == 1 or code == CHECK_VIOLATION)
    assert ran == [1]
