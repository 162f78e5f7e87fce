"""One job in: what is written, what is refused, whose defaults count, whose transaction it joins."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import psycopg
import pytest
from psycopg import (
    AsyncClientCursor,
    AsyncConnection,
    AsyncCursor,
    AsyncRawCursor,
    ClientCursor,
    Connection,
    Cursor,
    RawCursor,
)
from psycopg.rows import DictRow, args_row, dict_row
from psycopg.sql import SQL, Identifier
from pydantic import BaseModel

from pgq_core import AsyncJobQueue, InvalidJob, InvalidPayload, JobQueue, JobRequest, MalformedData, Registry
from pgq_core.errors import DatabaseUnavailable, MissingRights, QueueClosed, SchemaMissing, SchemaTooNew
from pgq_core.migrate import run_migrations
from tests.queue.rows import row, rows, value
from tests.schema.roles import dsn_of, new_role

JOBS = "SELECT * FROM jobs ORDER BY id"


class Invoice(BaseModel):
    customer: int
    total: Decimal


def test_a_job_is_written_with_the_defaults_of_the_columns(queue: JobQueue, conn: Connection[DictRow]) -> None:
    job = queue.enqueue("send_email", {"to": "a@example.org"})

    stored = row(conn, JOBS)
    assert (job.id, job.created, job.conflict) == (stored["id"], True, False)
    assert stored["payload"] == {"type": "send_email", "data": {"to": "a@example.org"}}
    assert (stored["queue"], stored["job_type"], stored["status"]) == ("default", "send_email", "pending")
    assert (stored["priority"], stored["attempts"], stored["max_attempts"]) == (0, 0, 5)
    assert (stored["timeout"], stored["idempotency_key"], stored["trace_context"]) == (None, None, None)
    assert stored["not_before"] == stored["created_at"]


def test_data_may_be_left_out(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.enqueue("ping")

    assert row(conn, JOBS)["payload"] == {"type": "ping", "data": {}}


def test_all_options_reach_the_row(queue: JobQueue, conn: Connection[DictRow]) -> None:
    queue.enqueue(
        "t",
        [1],
        queue="mail",
        priority=-7,
        delay=timedelta(minutes=5),
        idempotency_key="k",
        max_attempts=9,
        timeout=2.5,
        trace_context={"traceparent": "00-1-2-03"},
    )

    stored = row(conn, JOBS)
    assert (stored["queue"], stored["priority"], stored["max_attempts"]) == ("mail", -7, 9)
    assert (stored["idempotency_key"], stored["timeout"]) == ("k", timedelta(seconds=2.5))
    assert timedelta(minutes=5) <= stored["not_before"] - stored["created_at"] < timedelta(minutes=6)
    assert stored["status"] == "scheduled"
    assert stored["trace_context"] == {"traceparent": "00-1-2-03"}


@pytest.mark.parametrize("key", [None, "k"])
def test_the_earliest_time_of_python_means_at_once_too(
    queue: JobQueue, conn: Connection[DictRow], key: str | None
) -> None:
    """The table begins a day later, so that every time in it can be shown in any time zone."""
    moment = datetime.min.replace(tzinfo=UTC)

    queue.enqueue("t", not_before=moment, idempotency_key=key)
    queue.enqueue_many([JobRequest("t", not_before=moment)])

    assert rows(conn, "SELECT DISTINCT not_before, status FROM jobs") == [
        {"not_before": datetime(1, 1, 2, tzinfo=UTC), "status": "pending"}
    ]
    assert len(queue.claim(limit=5)) == 2


@pytest.mark.parametrize("key", [None, "k"])
def test_a_time_in_the_past_means_at_once(queue: JobQueue, conn: Connection[DictRow], key: str | None) -> None:
    moment = datetime(1971, 1, 1, tzinfo=UTC)

    queue.enqueue("t", not_before=moment, idempotency_key=key)

    stored = row(conn, JOBS)
    assert (stored["not_before"], stored["status"]) == (moment, "pending")


REFUSED: list[tuple[type[Exception], dict[str, Any]]] = [
    (InvalidPayload, {"data": float("nan")}),
    (InvalidPayload, {"data": "\x00"}),
    (InvalidPayload, {"data": b""}),
    (InvalidJob, {"priority": 2**31}),
    (InvalidJob, {"max_attempts": 0}),
    (InvalidJob, {"queue": ""}),
    (InvalidJob, {"job_type": ""}),
    (InvalidJob, {"job_type": None}),
    (InvalidJob, {"job_type": "a\nb"}),
    (InvalidJob, {"job_type": [1]}),
    (InvalidJob, {"job_type": {}}),
    (InvalidJob, {"delay": -1}),
    (InvalidJob, {"delay": 1e18}),
    (InvalidJob, {"not_before": datetime(2030, 1, 1)}),  # noqa: DTZ001 - that is the fault
    (InvalidJob, {"idempotency_key": ""}),
    (InvalidJob, {"timeout": -1}),
    (InvalidJob, {"trace_context": "\x00"}),
]


def test_what_is_refused_is_not_stored(queue: JobQueue, conn: Connection[DictRow]) -> None:
    for error, options in REFUSED:
        with pytest.raises(error):
            queue.enqueue(**{"job_type": "t", **options})

    assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_the_limit_of_the_payload_can_be_set(dsn: str) -> None:
    with JobQueue(dsn, max_payload=10) as queue:
        queue.enqueue("t", "12345678")
        with pytest.raises(InvalidPayload, match="limit of 10"):
            queue.enqueue("t", "123456789")


def test_a_handler_writes_its_defaults_and_the_caller_wins(
    queue: JobQueue, registry: Registry, conn: Connection[DictRow]
) -> None:
    @registry.handler("bill", model=Invoice, queue="billing", max_attempts=8, timeout=30)
    def bill(invoice: Invoice) -> None: ...

    queue.enqueue(bill, Invoice(customer=1, total=Decimal("9.90")))
    queue.enqueue("bill", {"customer": 2, "total": "1"}, queue="other", max_attempts=1, timeout=0)

    by_handler, by_name = conn.execute(JOBS).fetchall()
    assert (by_handler["queue"], by_handler["max_attempts"], by_handler["timeout"]) == (
        "billing",
        8,
        timedelta(seconds=30),
    )
    assert by_handler["payload"]["data"] == {"customer": 1, "total": "9.90"}
    assert (by_name["queue"], by_name["max_attempts"], by_name["timeout"]) == ("other", 1, timedelta(0))


@pytest.mark.parametrize("by_name", [True, False])
def test_a_model_refuses_at_the_door(
    queue: JobQueue, registry: Registry, conn: Connection[DictRow], by_name: bool
) -> None:
    handler = registry.handler("bill", model=Invoice)(lambda invoice: None)

    with pytest.raises(MalformedData) as refused:
        queue.enqueue("bill" if by_name else handler, {"customer": "x"})

    assert [path for path, _ in refused.value.problems] == ["data.customer", "data.total"]
    assert value(conn, "SELECT count(*) FROM jobs") == 0


def test_a_producer_without_the_handler_uses_what_workers_announced(queue: JobQueue, conn: Connection[DictRow]) -> None:
    conn.execute("INSERT INTO job_types (name, queue, max_attempts, timeout) VALUES ('known', 'mail', 2, '7 s')")
    conn.execute("INSERT INTO job_types (name) VALUES ('plain')")

    for job_type in ("known", "plain", "unknown"):
        queue.enqueue(job_type)

    stored = [(r["queue"], r["max_attempts"], r["timeout"]) for r in conn.execute(JOBS)]
    assert stored == [("mail", 2, timedelta(seconds=7)), ("default", 5, None), ("default", 5, None)]


def test_a_producer_that_may_only_insert_does_so(dsn: str, conn: Connection[DictRow]) -> None:
    with new_role(dsn) as role:
        conn.execute(SQL("GRANT USAGE ON SCHEMA pgq_core TO {}").format(Identifier(role)))
        conn.execute(SQL("GRANT SELECT (id), INSERT ON jobs TO {}").format(Identifier(role)))

        with JobQueue(dsn_of(role, dsn)) as queue:
            assert queue.enqueue("t").created
            with psycopg.connect(dsn_of(role, dsn)) as own:
                assert queue.enqueue("t", conn=own).created
            with pytest.raises(MissingRights):
                queue.get(1)

    assert value(conn, "SELECT count(*) FROM jobs") == 2


def test_an_enqueue_joins_the_caller_s_transaction(dsn: str, conn: Connection[DictRow]) -> None:
    with JobQueue("host=nowhere.invalid") as queue, psycopg.connect(dsn) as own:  # needs no connection of its own
        kept = queue.enqueue("kept", conn=own)
        keyed = queue.enqueue("keyed", idempotency_key="k", conn=own)
        assert value(conn, "SELECT count(*) FROM jobs") == 0
        own.commit()

        queue.enqueue("dropped", conn=own)
        queue.enqueue("dropped", idempotency_key="dropped", conn=own)
        queue.enqueue_many([("dropped", 1)], conn=own)
        own.rollback()

    assert [r["id"] for r in conn.execute(JOBS)] == [kept.id, keyed.id]
    assert value(conn, "SELECT count(*) FROM job_keys") == 1


def test_a_first_keyed_enqueue_leaves_the_commit_to_the_caller(dsn: str, conn: Connection[DictRow]) -> None:
    with JobQueue(dsn) as queue, psycopg.connect(dsn) as own:
        queue.enqueue("t", idempotency_key="k", conn=own)
        own.rollback()

    assert value(conn, "SELECT count(*) FROM jobs") == 0


async def test_an_asynchronous_enqueue_joins_the_caller_s_transaction(dsn: str, conn: Connection[DictRow]) -> None:
    async with AsyncJobQueue("host=nowhere.invalid") as queue, await AsyncConnection.connect(dsn) as own:
        await queue.enqueue("kept", conn=own)
        await queue.enqueue("kept", idempotency_key="k", conn=own)
        assert value(conn, "SELECT count(*) FROM jobs") == 0
        await own.commit()
        await queue.enqueue("dropped", idempotency_key="l", conn=own)
        await own.rollback()

    assert value(conn, "SELECT count(*) FROM jobs") == 2


@pytest.mark.parametrize("row_factory", [dict_row, args_row(print)])
@pytest.mark.parametrize("cursor_factory", [Cursor, ClientCursor, RawCursor])
def test_a_caller_s_connection_may_make_any_cursors_and_rows(
    dsn: str, queue: JobQueue, cursor_factory: type[Cursor[Any]], row_factory: Any
) -> None:
    with psycopg.connect(dsn, cursor_factory=cursor_factory, row_factory=row_factory) as own:
        plain = queue.enqueue("t", {"a": "%s $1"}, conn=own)
        keyed = queue.enqueue("t", 2, idempotency_key="k", conn=own)
        batch = queue.enqueue_many([("t", 3), ("t", 4)], conn=own)
        again = queue.enqueue_many([JobRequest("t", 2, idempotency_key="k"), ("t", 5)], conn=own)
        assert queue.get(plain.id, conn=own).data == {"a": "%s $1"}
    (job,) = queue.claim()
    with psycopg.connect(dsn, cursor_factory=cursor_factory, row_factory=row_factory) as own:
        queue.complete(job, {"sum": 1}, conn=own)

    assert again[0].id == keyed.id
    assert queue.result(plain.id) == {"sum": 1}
    assert [queue.get(answer.id).data for answer in [*batch, again[1]]] == [3, 4, 5]


@pytest.mark.parametrize("cursor_factory", [AsyncClientCursor, AsyncRawCursor])
async def test_an_asynchronous_connection_may_make_any_cursors_too(
    dsn: str, async_queue: AsyncJobQueue, cursor_factory: type[AsyncCursor[Any]]
) -> None:
    async with await AsyncConnection.connect(dsn, cursor_factory=cursor_factory, row_factory=args_row(print)) as own:
        plain = await async_queue.enqueue("t", {"a": "%s $1"}, conn=own)
        keyed = await async_queue.enqueue("t", 2, idempotency_key="k", conn=own)
        batch = await async_queue.enqueue_many([("t", 3), JobRequest("t", 2, idempotency_key="k")], conn=own)

    assert (await async_queue.get(plain.id)).data == {"a": "%s $1"}
    assert batch[1].id == keyed.id


@pytest.mark.parametrize("key", [None, "k"])
async def test_a_caller_s_closed_connection_is_the_driver_s_error(
    dsn: str, queue: JobQueue, async_queue: AsyncJobQueue, key: str | None
) -> None:
    with psycopg.connect(dsn) as own:
        pass
    with pytest.raises(psycopg.OperationalError, match="closed"):
        queue.enqueue("t", idempotency_key=key, conn=own)
    async with await AsyncConnection.connect(dsn) as other:
        pass
    with pytest.raises(psycopg.OperationalError, match="closed"):
        await async_queue.enqueue("t", idempotency_key=key, conn=other)


async def test_a_connection_of_the_other_kind_is_refused(dsn: str, queue: JobQueue, async_queue: AsyncJobQueue) -> None:
    async with await AsyncConnection.connect(dsn) as asynchronous:
        with pytest.raises(TypeError, match=r"psycopg\.Connection here, not a AsyncConnection"):
            queue.enqueue("t", conn=asynchronous)
    with (
        psycopg.connect(dsn) as plain,
        pytest.raises(TypeError, match=r"psycopg\.AsyncConnection here, not a Connection"),
    ):
        await async_queue.enqueue("t", conn=plain)


async def test_a_handler_enqueues_itself_on_either_queue(
    queue: JobQueue, async_queue: AsyncJobQueue, registry: Registry, conn: Connection[DictRow]
) -> None:
    @registry.handler("send_email", queue="mail")
    def send_email(data: dict[str, str]) -> None: ...

    plain = send_email.enqueue(queue, to="a@example.org")
    asynchronous = await send_email.options(priority=3).enqueue(async_queue, to="b@example.org")

    first, second = conn.execute(JOBS).fetchall()
    assert (first["id"], first["queue"], first["payload"]["data"]) == (plain.id, "mail", {"to": "a@example.org"})
    assert (second["id"], second["priority"]) == (asynchronous.id, 3)


@pytest.mark.parametrize(
    "name", ["enqueue", "enqueue_many", "claim", "extend", "complete", "fail", "release", "cancel", "get", "result"]
)
def test_both_faces_have_the_same_verbs(name: str) -> None:
    plain = inspect.signature(getattr(JobQueue, name))
    asynchronous = inspect.signature(getattr(AsyncJobQueue, name))

    assert inspect.iscoroutinefunction(getattr(AsyncJobQueue, name))
    assert str(plain) == str(asynchronous).replace("AsyncConnection", "Connection")
    assert getattr(JobQueue, name).__doc__ == getattr(AsyncJobQueue, name).__doc__


def test_a_database_without_our_tables_is_named(empty_dsn: str) -> None:
    with JobQueue(empty_dsn) as queue, pytest.raises(SchemaMissing, match="pgq-core migrate --schema pgq_core"):
        queue.enqueue("t")


@pytest.mark.parametrize("change", ["version = 9999", "compatible_from = 9999"])
async def test_a_schema_that_this_program_cannot_serve_is_refused(
    dsn: str, conn: Connection[DictRow], change: Literal["version = 9999", "compatible_from = 9999"]
) -> None:
    conn.execute(f"UPDATE schema_migrations SET {change} WHERE version = (SELECT max(version) FROM schema_migrations)")

    with JobQueue(dsn) as queue:
        async with AsyncJobQueue(dsn) as async_queue:
            if change.startswith("version"):  # a newer one that serves us too
                assert queue.enqueue("t").created
                assert (await async_queue.enqueue("t")).created
            else:
                with pytest.raises(SchemaTooNew):
                    queue.enqueue("t")
                with pytest.raises(SchemaTooNew):
                    await async_queue.enqueue("t")


async def test_tables_in_public_are_pointed_at(empty_dsn: str) -> None:
    run_migrations(empty_dsn, "public")

    with JobQueue(empty_dsn) as queue, pytest.raises(SchemaMissing, match='pass schema="public"'):
        queue.enqueue("t")
    async with AsyncJobQueue(empty_dsn) as async_queue:
        with pytest.raises(SchemaMissing, match='pass schema="public"'):
            await async_queue.enqueue("t")
    with JobQueue(empty_dsn, schema="public") as queue:
        assert queue.enqueue("t").created


async def test_tables_in_the_usual_schema_are_pointed_at(dsn: str) -> None:
    with JobQueue(dsn, schema="public") as queue, pytest.raises(SchemaMissing, match='pass schema="pgq_core"'):
        queue.enqueue("t")
    async with AsyncJobQueue(dsn, schema="public") as async_queue:
        with pytest.raises(SchemaMissing, match='pass schema="pgq_core"'):
            await async_queue.enqueue("t")


def test_another_schema_is_used_when_told(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with JobQueue(dsn, schema="else where") as queue, pytest.raises(SchemaMissing, match="else where"):
        queue.enqueue("t")
    monkeypatch.setenv("PGQ_SCHEMA", "from_environment")
    with JobQueue(dsn) as queue, pytest.raises(SchemaMissing, match="from_environment"):
        queue.enqueue("t")


@pytest.mark.parametrize("dsn", ["postgresql://127.0.0.1:1/x", "host=/nonexistent dbname=x"])
async def test_a_server_that_is_not_there_is_one_clear_error(dsn: str) -> None:
    with JobQueue(dsn) as queue, pytest.raises(DatabaseUnavailable):
        queue.enqueue("t")
    async with AsyncJobQueue(dsn) as asynchronous:
        with pytest.raises(DatabaseUnavailable):
            await asynchronous.enqueue("t")


async def test_a_closed_queue_says_so(queue: JobQueue, async_queue: AsyncJobQueue) -> None:
    queue.close()
    await async_queue.close()

    with pytest.raises(QueueClosed):
        queue.enqueue("t")
    with pytest.raises(QueueClosed):
        await async_queue.enqueue("t")
