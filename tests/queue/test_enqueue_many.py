"""A batch: one round trip, an answer per item in input order, no item fails another."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import DictRow
from pydantic import BaseModel

from pgq_core import (
    AsyncJobQueue,
    EnqueuedJob,
    InvalidJob,
    InvalidPayload,
    JobQueue,
    JobRequest,
    MalformedData,
    Registry,
)
from tests.queue.rows import rows, value


class Order(BaseModel):
    number: int


def test_a_batch_answers_its_ids_in_input_order(queue: JobQueue, conn: Connection[DictRow]) -> None:
    items = [
        JobRequest("t", {"n": n}, priority=n % 3 - 1, idempotency_key=None if n % 2 else f"k{-n}") for n in range(500)
    ]

    answers = queue.enqueue_many(items)

    assert all(answer.created and not answer.conflict for answer in answers)
    stored = {r["id"]: r["payload"]["data"]["n"] for r in rows(conn, "SELECT id, payload FROM jobs")}
    assert [stored[answer.id] for answer in answers] == list(range(500))


def test_known_and_repeated_keys_do_not_fail_the_batch(queue: JobQueue, conn: Connection[DictRow]) -> None:
    """100 items, 3 of them with keys already live, 2 with a key repeated inside the batch."""
    live = [queue.enqueue("t", n, idempotency_key=f"k{n}") for n in (10, 50, 90)]
    items = [JobRequest("t", n, idempotency_key=f"k{n}") for n in range(100)]
    items[20] = JobRequest("t", 5, idempotency_key="k5")
    items[70] = JobRequest("t", 7, idempotency_key="k7")

    answers = queue.enqueue_many(items)

    assert Counter(answer.created for answer in answers) == {True: 95, False: 5}
    assert [answers[n].id for n in (10, 50, 90)] == [job.id for job in live]
    assert answers[20] == EnqueuedJob(answers[5].id, created=False)
    assert answers[70] == EnqueuedJob(answers[7].id, created=False)
    assert not any(answer.conflict for answer in answers)
    assert value(conn, "SELECT count(*) FROM jobs") == 98


def test_conflicts_are_reported_per_item(queue: JobQueue, conn: Connection[DictRow]) -> None:
    live = queue.enqueue("t", 1, idempotency_key="live")

    answers = queue.enqueue_many(
        [
            JobRequest("t", 2, idempotency_key="live"),
            JobRequest("t", 1, idempotency_key="new"),
            JobRequest("t", 2, idempotency_key="new"),
            JobRequest("t", 1, idempotency_key="new", queue="other"),
            ("t", 1),
        ]
    )

    assert answers[0] == EnqueuedJob(live.id, created=False, conflict=True)
    new = answers[1].id
    assert answers[1:4] == [
        EnqueuedJob(new, created=True),
        EnqueuedJob(new, created=False, conflict=True),
        EnqueuedJob(new, created=False, conflict=True),
    ]
    assert answers[4].created
    assert value(conn, "SELECT count(*) FROM jobs") == 3


def test_all_options_reach_the_rows(queue: JobQueue, registry: Registry, conn: Connection[DictRow]) -> None:
    handler = registry.handler("order", model=Order, queue="orders", timeout=9)(lambda order: None)
    moment = datetime(2100, 1, 1, tzinfo=UTC)

    queue.enqueue_many(
        [
            (handler, Order(number=1)),
            JobRequest(
                "order", {"number": 2}, queue="other", max_attempts=2, not_before=moment, trace_context={"a": 1}
            ),
            JobRequest("plain", None, delay=60, timeout=0),
        ]
    )

    first, second, third = rows(conn, "SELECT *, not_before - created_at AS wait FROM jobs ORDER BY id")
    assert (first["queue"], first["timeout"], first["payload"]) == (
        "orders",
        timedelta(seconds=9),
        {"type": "order", "data": {"number": 1}},
    )
    assert (second["queue"], second["max_attempts"], second["not_before"]) == ("other", 2, moment)
    assert (second["trace_context"], second["status"]) == ({"a": 1}, "scheduled")
    assert (third["payload"]["data"], third["timeout"]) == ({}, timedelta(0))
    assert timedelta(minutes=1) <= third["wait"] < timedelta(minutes=2)


def test_an_invalid_item_is_named_and_refuses_the_batch(
    queue: JobQueue, registry: Registry, conn: Connection[DictRow]
) -> None:
    registry.handler("order", model=Order)(lambda order: None)

    with pytest.raises(InvalidPayload, match=r"^items\[1\]\.data\.a: "):
        queue.enqueue_many([("t", 1), ("t", {"a": "\x00"})])
    with pytest.raises(InvalidJob) as refused:
        queue.enqueue_many([("t", 1), JobRequest("t", priority=10**6)])
    assert refused.value.field == "items[1].priority"
    with pytest.raises(MalformedData) as malformed:
        queue.enqueue_many([("order", {"number": "x"})])
    assert malformed.value.problems[0][0] == "items[0].data.number"
    assert value(conn, "SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize("items", ["abc", b"abc", bytearray(b"ab"), {"a": 1}, {"type": "a"}, None, 5, JobRequest("t")])
def test_what_is_no_list_of_jobs_is_no_batch(queue: JobQueue, conn: Connection[DictRow], items: Any) -> None:
    """Text and mappings can be iterated over, too: into jobs that nobody meant."""
    with pytest.raises(InvalidJob, match="is no list of jobs") as refused:
        queue.enqueue_many(items)

    assert refused.value.field == "items"
    assert value(conn, "SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize(
    ("item", "field"),
    [
        ("ab", "items[1]"),
        (b"ab", "items[1]"),
        ({"type": "a"}, "items[1]"),
        ({"type": "a", "data": {}}, "items[1]"),
        ((), "items[1]"),
        (("a",), "items[1]"),
        (("a", 1, 2), "items[1]"),
        (["a", 1, "queue"], "items[1]"),
        ({"a", 1}, "items[1]"),
        (None, "items[1]"),
        (5, "items[1]"),
        ((None, 1), "items[1].type"),
        (([1], 1), "items[1].type"),
        (({}, 1), "items[1].type"),
        (JobRequest(None), "items[1].type"),  # type: ignore[arg-type]
        (JobRequest([1]), "items[1].type"),  # type: ignore[arg-type]
        (JobRequest("t", queue=[1]), "items[1].queue"),  # type: ignore[arg-type]
    ],
)
async def test_what_is_no_job_in_a_batch_is_named(
    queue: JobQueue, async_queue: AsyncJobQueue, conn: Connection[DictRow], item: Any, field: str
) -> None:
    with pytest.raises(InvalidJob) as refused:
        queue.enqueue_many([("t", 1), item])
    assert refused.value.field == field
    with pytest.raises(InvalidJob) as refused:
        await async_queue.enqueue_many([("t", 1), item])
    assert refused.value.field == field
    assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_pairs_may_be_lists_and_named_tuples(queue: JobQueue, conn: Connection[DictRow]) -> None:
    class Pair(NamedTuple):
        kind: str
        order: object

    items: list[Any] = [["t", 1], Pair("t", {"a": 2}), ("t", None)]
    answers = queue.enqueue_many(iter(items))

    assert [queue.get(answer.id).data for answer in answers] == [1, {"a": 2}, {}]
    assert value(conn, "SELECT count(*) FROM jobs") == 3


def test_an_empty_batch_is_no_work(queue: JobQueue) -> None:
    assert queue.enqueue_many([]) == []


def test_a_batch_joins_the_caller_s_transaction(dsn: str, queue: JobQueue, conn: Connection[DictRow]) -> None:
    with psycopg.connect(dsn) as own:
        queue.enqueue_many([("t", 1), JobRequest("t", 2, idempotency_key="k")], conn=own)
        assert value(conn, "SELECT count(*) FROM jobs") == 0
        own.rollback()
    assert value(conn, "SELECT count(*) FROM job_keys") == 0


def test_batches_with_the_same_keys_in_any_order_do_not_deadlock(dsn: str, conn: Connection[DictRow]) -> None:
    keys = [f"k{number}" for number in range(50)]

    with JobQueue(dsn, max_connections=8) as queue, ThreadPoolExecutor(8) as threads:
        batches = [
            [JobRequest("t", 1, idempotency_key=key) for key in (keys if number % 2 else reversed(keys))]
            for number in range(40)
        ]
        answers = list(threads.map(queue.enqueue_many, batches))

    assert value(conn, "SELECT count(*) FROM jobs") == 50
    assert sum(answer.created for batch in answers for answer in batch) == 50
    assert value(conn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == 0


async def test_the_asynchronous_queue_answers_the_same(async_queue: AsyncJobQueue) -> None:
    answers = await async_queue.enqueue_many([("t", 1), JobRequest("t", 2, idempotency_key="k"), ("t", 3)])

    assert [answer.created for answer in answers] == [True, True, True]
    assert [(await async_queue.get(answer.id)).data for answer in answers] == [1, 2, 3]


def test_a_large_batch_takes_no_more_steps_per_item_than_a_small_one(
    queue: JobQueue, conn: Connection[DictRow]
) -> None:
    """Prepared by small batches first; n * n steps would run into the statement timeout of the queue."""
    for _ in range(6):
        queue.enqueue_many([("t", 1), JobRequest("t", 1, idempotency_key="k")])

    answers = queue.enqueue_many(
        JobRequest("t", n % 7, idempotency_key=f"k{n // 2}" if n % 3 else None) for n in range(20_000)
    )

    assert len(answers) == 20_000
    assert len({answer.id for answer in answers if answer.created}) == value(conn, "SELECT count(*) FROM jobs") - 7
