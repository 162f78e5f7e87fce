"""An enqueue is one round trip on a connection at hand, and loses nothing of what the driver's way promises."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from operator import itemgetter
from textwrap import dedent
from typing import Any

import pytest
from psycopg import Connection
from psycopg.errors import CheckViolation
from psycopg.rows import DictRow

from pgq_core import AsyncJobQueue, InvalidJob, JobQueue, JobRequest, Registry
from tests.queue.rows import rows, value
from tests.support.waiting import eventually

PREPARED = "SELECT name, generic_plans + custom_plans AS runs FROM pg_prepared_statements"


def test_each_enqueue_is_one_run_of_one_prepared_statement(queue: JobQueue) -> None:
    for number in range(5):
        queue.enqueue("t", number)
    queue.enqueue_many([("t", 1), ("u", 2)])
    session = queue._connections.take()
    prepared = dict(session.execute(PREPARED).fetchall())
    queue._connections.give_back(session)

    assert prepared["pgq_enqueue_job"] == 5
    assert prepared["pgq_enqueue_alike_jobs"] == 1


async def test_asynchronous_enqueues_go_the_same_way(async_queue: AsyncJobQueue) -> None:
    for number in range(5):
        await async_queue.enqueue("t", number)
    session = await async_queue._connections.take()
    prepared = dict(await (await session.execute(PREPARED)).fetchall())
    await async_queue._connections.give_back(session)

    assert prepared["pgq_enqueue_job"] == 5


def test_calls_in_a_row_use_one_connection(queue: JobQueue) -> None:
    first = queue._connections.take()
    queue._connections.give_back(first)
    queue.enqueue("t")
    second = queue._connections.take()
    queue._connections.give_back(second)

    assert first is second


def test_no_thread_starves_while_others_take_turns_at_one_connection(dsn: str, conn: Connection[DictRow]) -> None:
    with JobQueue(dsn, max_connections=1, timeout=60) as queue, ThreadPoolExecutor(8) as threads:

        def work(worker: int) -> None:
            for number in range(25):
                queue.enqueue("t", [worker, number])

        list(threads.map(work, range(8)))

    assert value(conn, "SELECT count(*) FROM jobs") == 200


@pytest.mark.parametrize("moment", [datetime(2100, 1, 1, tzinfo=UTC), datetime(1, 1, 3, tzinfo=UTC)])
def test_all_settings_of_a_job_and_of_a_batch_arrive_alike(
    queue: JobQueue, conn: Connection[DictRow], moment: datetime
) -> None:
    options: dict[str, Any] = {
        "queue": "mail",
        "priority": -7,
        "max_attempts": 9,
        "timeout": timedelta(days=3, seconds=5, microseconds=7),
        "trace_context": {"traceparent": 'é"\\'},
    }
    queue.enqueue("t", {"ü": "\n\u2028"}, not_before=moment, **options)
    queue.enqueue_many([JobRequest("t", {"ü": "\n\u2028"}, not_before=moment, **options)])
    queue.enqueue("t", {"ü": "\n\u2028"}, delay=timedelta(days=1, microseconds=3), **options)
    queue.enqueue_many([JobRequest("t", {"ü": "\n\u2028"}, delay=timedelta(days=1, microseconds=3), **options)])

    columns = "queue, priority, max_attempts, timeout, trace_context, payload, status"
    stored = rows(conn, f"SELECT {columns}, not_before, not_before - created_at AS delay FROM jobs ORDER BY id")
    for row in stored:
        delay = row.pop("delay")
        if row["not_before"] != moment:
            assert timedelta(days=1, microseconds=3) <= delay < timedelta(days=1, minutes=1)
        row.pop("not_before")
    assert stored[0] == stored[1]
    assert stored[2] == stored[3]
    assert stored[0]["payload"] == {"type": "t", "data": {"ü": "\n\u2028"}}
    assert stored[0]["timeout"] == options["timeout"]
    assert stored[0]["trace_context"] == options["trace_context"]


def test_a_batch_larger_than_any_buffer_arrives_in_order(queue: JobQueue, conn: Connection[DictRow]) -> None:
    answers = queue.enqueue_many([("t", [number, "x" * 200_000]) for number in range(40)])

    stored = {row["id"]: row["n"] for row in rows(conn, "SELECT id, (payload #>> '{data,0}')::int AS n FROM jobs")}
    assert [stored[answer.id] for answer in answers] == list(range(40))


async def test_a_large_batch_does_not_block_the_event_loop(
    async_queue: AsyncJobQueue, conn: Connection[DictRow]
) -> None:
    answers = await async_queue.enqueue_many([("t", [number, "x" * 200_000]) for number in range(40)])

    assert len({answer.id for answer in answers}) == 40


def test_a_batch_of_several_types_and_one_of_several_settings_answer_in_order(
    queue: JobQueue, conn: Connection[DictRow]
) -> None:
    answers = [
        *queue.enqueue_many([("t", 0), ("u", 1), JobRequest("v", 2)]),
        *queue.enqueue_many([JobRequest("t", 3, priority=1), JobRequest("t", 4), JobRequest("t", 5, priority=1)]),
    ]

    stored = {row["id"]: row for row in rows(conn, "SELECT id, job_type, priority, payload FROM jobs")}
    assert [stored[answer.id]["payload"]["data"] for answer in answers] == list(range(6))
    assert [stored[answer.id]["job_type"] for answer in answers] == ["t", "u", "v", "t", "t", "t"]
    assert [stored[answer.id]["priority"] for answer in answers] == [0, 0, 0, 1, 0, 1]


class Box(StrEnum):
    LETTERS = "letters of an enum"
    KEY = "key of an enum"
    TYPE = "type of an enum"


class Level(IntEnum):
    FOUR = 4


class Span(timedelta):
    pass


class Moment(datetime):
    pass


async def test_values_of_derived_types_are_stored_as_plain_ones_are(
    queue: JobQueue, async_queue: AsyncJobQueue, registry: Registry, conn: Connection[DictRow]
) -> None:
    """And leave no cache behind in which a plain name finds the other one."""
    options: dict[str, Any] = {
        "queue": Box.LETTERS,
        "priority": Level.FOUR,
        "max_attempts": Level.FOUR,
        "timeout": Span(seconds=5),
        "trace_context": Box.KEY,
    }
    handler = registry.handler("handled", queue=Box.LETTERS, max_attempts=Level.FOUR, timeout=Span(seconds=5))(
        lambda data: None
    )

    queue.enqueue(Box.TYPE, delay=Span(0), **options)
    queue.enqueue(Box.TYPE, not_before=Moment(2000, 1, 1, tzinfo=UTC), idempotency_key=Box.KEY, **options)
    again = queue.enqueue(str(Box.TYPE), idempotency_key=str(Box.KEY), queue=str(Box.LETTERS))
    await async_queue.enqueue(Box.TYPE, delay=Span(0), **options)
    queue.enqueue_many([JobRequest(Box.TYPE, delay=Level.FOUR, **options), JobRequest(Box.TYPE, **options)])
    queue.enqueue_many([(Box.TYPE, 1), (str(Box.TYPE), 1)])
    queue.enqueue(handler, priority=4, trace_context="key of an enum")
    queue.enqueue(str(Box.TYPE), **{**options, "queue": str(Box.LETTERS)})

    assert not again.created
    assert type(queue.get(again.id).idempotency_key) is str
    stored = rows(conn, "SELECT DISTINCT queue, priority, max_attempts, timeout, trace_context FROM jobs")
    plain = {"queue": "letters of an enum", "priority": 4, "max_attempts": 4, "timeout": timedelta(seconds=5)}
    assert sorted(stored, key=itemgetter("priority"))[1:] == [{**plain, "trace_context": "key of an enum"}]
    assert rows(conn, "SELECT DISTINCT job_type FROM jobs ORDER BY 1") == [
        {"job_type": "handled"},
        {"job_type": "type of an enum"},
    ]


def test_a_value_equal_to_a_good_one_is_still_refused_in_a_batch(queue: JobQueue) -> None:
    with pytest.raises(InvalidJob, match=r"items\[1\]\.priority"):
        queue.enqueue_many([JobRequest("t", priority=1), JobRequest("t", priority=True)])


def test_a_client_of_another_encoding_stores_the_same(
    dsn: str, conn: Connection[DictRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with JobQueue(dsn) as queue:
        queue.enqueue("t", "é")
        queue.enqueue_many([("t", "é")])

    assert [row["data"] for row in rows(conn, "SELECT payload ->> 'data' AS data FROM jobs")] == ["é", "é"]


def test_a_refusal_by_the_server_is_raised_as_the_driver_would_and_costs_no_connection(
    queue: JobQueue, conn: Connection[DictRow]
) -> None:
    conn.execute("ALTER TABLE jobs ADD CONSTRAINT not_today CHECK (queue <> 'closed')")
    before = queue._connections.take()
    queue._connections.give_back(before)
    with pytest.raises(CheckViolation) as refused:
        queue.enqueue("t", queue="closed")
    after = queue._connections.take()
    queue._connections.give_back(after)

    assert refused.value.diag.constraint_name == "not_today"
    assert before is after
    assert queue.enqueue("t").created


def test_ctrl_c_ends_an_enqueue_that_waits_and_stores_nothing(dsn: str, conn: Connection[DictRow]) -> None:
    program = """
        import sys
        from pgq_core import JobQueue

        queue = JobQueue(sys.argv[1])
        queue.enqueue("before")
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            queue.enqueue("stuck")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        sys.stdin.readline()
        queue.enqueue("after")
        queue.close()
    """
    command = [sys.executable, "-c", dedent(program), dsn]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with conn.transaction():
            conn.execute("LOCK TABLE jobs")
            process.stdin.write("\n")
            process.stdin.flush()
            eventually(lambda: value(conn, "SELECT count(*) FROM pg_locks WHERE NOT granted"))
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait(60) == 0

    assert [row["job_type"] for row in rows(conn, "SELECT job_type FROM jobs ORDER BY id")] == ["before", "after"]
