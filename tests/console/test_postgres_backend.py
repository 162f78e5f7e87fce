"""The backend on a real database: what it reads and does, and how it behaves when the database goes away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from psycopg import AsyncConnection

from pgq_core.domain.audit import Audit, AuditRule
from pgq_core.domain.filters import DeadLetterFilters, JobFilters, RunFilters
from pgq_core.errors import DatabaseUnavailable, OperationRefused, ReadOnlyRefused, SchemaMissing
from pgq_core.migrate import check_schema_async, migrate
from pgq_tui.backend.lane import Lane
from pgq_tui.backend.postgres import PostgresBackend
from pgq_tui.view_model.windows import DEFAULT_WINDOW
from tests.console.network import network_to
from tests.console.stage import console, shows
from tests.support.zoo import add_dead_letter, add_job, add_pool, add_run, add_running_job, add_worker, value_of

SOON = 60.0
"""For a busy machine. Whoever waits for the server waits longer: by `patient` he has no limit of his own."""


async def fits(conn: AsyncConnection) -> None:
    await check_schema_async(conn, "pgq_core")


@contextlib.asynccontextmanager
async def backend_on(dsn: str, *, read_only: bool = False) -> AsyncIterator[PostgresBackend]:
    backend = PostgresBackend(dsn, operator="ada", read_only=read_only)
    try:
        yield backend
    finally:
        await backend.close()


@contextlib.asynccontextmanager
async def plain(dsn: str) -> AsyncIterator[AsyncConnection]:
    async with await AsyncConnection.connect(dsn, autocommit=True) as conn:
        yield conn


async def test_it_reads_what_is_there(dsn: str) -> None:
    async with plain(dsn) as conn, backend_on(dsn) as backend:
        await add_worker(conn, "host-a-emails-1", pool="emails")
        await add_pool(conn)
        pending, running = await add_job(conn, queue="mail"), await add_running_job(conn, worker_id="host-a-emails-1")
        letter = await add_dead_letter(conn, key="order-1")
        run = await add_run(conn, error="ValueError: x", outcome="retried")

        overview = await backend.overview(DEFAULT_WINDOW)
        everything = RunFilters()

        assert {queue.name for queue in overview.queues} == {"default", "mail"}
        assert [pool.name for pool in overview.pools] == ["emails"]
        assert overview.dead_unresolved.value == 1
        assert {job.id for job in (await backend.jobs(JobFilters())).jobs} == {pending, running}
        assert [one.job_id for one in await backend.running_jobs(everything, 10)] == [running]
        assert run in {one.id for one in await backend.latest_runs(10, everything)}
        assert run in {one.id for one in await backend.runs_after(0, (), 10, everything)}
        assert run not in {one.id for one in await backend.runs_after(0, (run,), 10, everything)}
        found = await backend.run(run)
        assert found is not None
        assert found.run.error == "ValueError: x"
        record = await backend.job(pending)
        assert record is not None
        assert record.state == "pending"
        assert [one.id for one in await backend.dead_letters(DeadLetterFilters())] == [letter]
        assert (await backend.count_dead_letters(DeadLetterFilters())).value == 1
        assert [group.count.value for group in await backend.dead_groups()] == [1]
        detail = await backend.dead_letter(letter)
        assert detail is not None
        assert detail.idempotency_key == "order-1"
        assert (await backend.preview_dead_letters(DeadLetterFilters(), 10)).ids == (letter,)
        assert await backend.worker_output("host-a-emails-1") == "last words"


async def test_verbs_are_written_down_and_can_be_undone(dsn: str) -> None:
    async with plain(dsn) as conn, backend_on(dsn) as backend:
        await add_worker(conn, "host-a-emails-1", pool="emails")
        await add_pool(conn, wanted=2)
        letter, job = await add_dead_letter(conn), await add_job(conn)

        replayed = await backend.replay([letter])
        assert replayed.done == 1
        assert replayed.operation_id is not None
        assert (await backend.undo(replayed.operation_id)).done == 1
        assert (await backend.discard([letter, 999])).refused == 1
        assert (await backend.scale_by("host-a", "emails", 1)).refusal is None
        assert (await backend.scale("host-a", "emails", 99)).refusal is not None
        assert (await backend.pause("default", "deploy")).refusal is None
        assert (await backend.resume("default")).refusal is None
        audit = await backend.set_audit("default", AuditRule(Audit.SAMPLE, 0.05))
        assert await value_of(conn, "SELECT audit || ' ' || audit_sample FROM queues") == "sample 0.05"
        assert audit.operation_id is not None
        await backend.undo(audit.operation_id)
        assert await value_of(conn, "SELECT audit FROM queues") == "all"
        assert (await backend.cancel([job])).items[0].answer == "cancelled"
        assert (await backend.drain_worker("host-a-emails-1")).refusal is None
        assert (await backend.restart_worker("host-a-emails-1")).refusal is None

        assert await value_of(conn, "SELECT wanted FROM worker_pools") == 3
        assert await value_of(conn, "SELECT resolution FROM dead_letter_jobs WHERE id = %s", letter) == "discarded"
        assert {one.operator for one in await backend.operations(50)} == {"ada"}
        with pytest.raises(OperationRefused):
            await backend.undo(replayed.operation_id)


async def test_a_read_only_backend_refuses_every_verb(dsn: str) -> None:
    async with backend_on(dsn, read_only=True) as backend:
        await backend.overview(DEFAULT_WINDOW)
        for verb in (
            backend.replay([1]),
            backend.discard([1]),
            backend.undo(1),
            backend.cancel([1]),
            backend.pause("default", None),
            backend.resume("default"),
            backend.set_audit("default", AuditRule(Audit.FAILURES)),
            backend.scale("h", "p", 1),
            backend.scale_by("h", "p", 1),
            backend.drain_worker("w"),
            backend.restart_worker("w"),
        ):
            with pytest.raises(ReadOnlyRefused):
                await verb


async def test_reads_cannot_write_and_three_connections_are_enough(dsn: str) -> None:
    async with plain(dsn) as conn, backend_on(dsn) as backend:
        await asyncio.gather(
            backend.overview(DEFAULT_WINDOW),
            backend.dead_letters(DeadLetterFilters()),
            backend.job(1),
            backend.dead_letter(1),
            backend.pause("default", None),
            backend.resume("default"),
        )

        sessions = "FROM pg_stat_activity WHERE application_name = 'pgq-tui' AND datname = current_database()"
        assert await value_of(conn, f"SELECT count(*) {sessions}") == 3
        await backend.close()
        lane = Lane(dsn, fits, application_name="pgq-tui", statement_timeout=2.0, read_only=True)
        with pytest.raises(DatabaseUnavailable):  # 25006: this connection takes no writes
            await lane.read(lambda reading: reading.execute("DELETE FROM jobs"))
        await lane.close()


async def test_a_database_without_our_tables_is_named_and_opens_by_itself_afterwards(empty_dsn: str) -> None:
    async with backend_on(empty_dsn) as backend:
        with pytest.raises(SchemaMissing, match="pgq-core migrate"):
            await backend.overview(DEFAULT_WINDOW)

        await asyncio.to_thread(migrate, empty_dsn)

        assert (await backend.overview(DEFAULT_WINDOW)).queues == ()


async def test_tables_in_the_other_schema_are_found_when_nobody_named_one(empty_dsn: str) -> None:
    await asyncio.to_thread(migrate, empty_dsn, schema="public")
    backend = PostgresBackend(empty_dsn, may_look_elsewhere=True)
    named = PostgresBackend(empty_dsn)

    assert (await backend.overview(DEFAULT_WINDOW)).queues == ()
    assert await backend.find_schema() == "public"
    with pytest.raises(SchemaMissing):
        await named.overview(DEFAULT_WINDOW)
    await backend.close()
    await named.close()


async def test_terminated_sessions_are_replaced_without_a_word(dsn: str) -> None:
    async with plain(dsn) as conn, backend_on(dsn) as backend:
        for _ in range(10):
            await backend.overview(DEFAULT_WINDOW)
            await backend.job(1)
            await conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgq-tui'"
                " AND datname = current_database()"
            )


async def test_a_write_is_sent_over_a_connection_that_has_just_answered(dsn: str) -> None:
    async with plain(dsn) as conn, backend_on(dsn) as backend:
        await backend.pause("default", "one")
        await conn.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgq-tui'"
            " AND datname = current_database()"
        )

        await backend.pause("default", "two")

        assert await value_of(conn, "SELECT count(*) FROM operations") == 2


async def test_a_slow_statement_is_cancelled_by_the_server(dsn: str) -> None:
    lane = Lane(dsn, fits, application_name="pgq-tui", statement_timeout=0.2, read_only=True)

    with pytest.raises(DatabaseUnavailable) as caught:
        await lane.read(lambda conn: conn.execute("SELECT pg_sleep(5)"))

    assert caught.value.sqlstate == "57014"
    assert await lane.read(lambda conn: value_of(conn, "SELECT 1")) == 1
    await lane.close()


async def test_a_server_that_says_nothing_counts_as_gone_and_is_found_again(dsn: str) -> None:
    async with network_to(dsn) as network:
        lane = Lane(network.address, fits, application_name="pgq-tui", statement_timeout=2.0, answer_within=0.3)
        assert await lane.read(lambda conn: value_of(conn, "SELECT 1")) == 1
        network.swallow()

        with pytest.raises(DatabaseUnavailable, match="no answer within"):
            await lane.read(lambda conn: value_of(conn, "SELECT 1"))

        network.mend()
        assert await lane.read(lambda conn: value_of(conn, "SELECT 1")) == 1
        await lane.close()


async def test_a_write_is_not_waited_for_for_ever(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgq_tui.backend.lane.SILENCE", 0.0)
    async with network_to(dsn) as network:
        lane = Lane(network.address, fits, application_name="pgq-tui", statement_timeout=1.0)
        assert await lane.write(lambda conn: value_of(conn, "SELECT 1")) == 1

        async def falls_silent(conn: AsyncConnection) -> object:
            network.swallow()
            return await value_of(conn, "SELECT 1")

        with pytest.raises(DatabaseUnavailable, match="no answer within 1 s"):
            await lane.write(falls_silent)

        network.mend()
        assert await lane.write(lambda conn: value_of(conn, "SELECT 1")) == 1
        await lane.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads wait for their answer for as long as it takes."""
    monkeypatch.setattr("pgq_tui.backend.postgres.ANSWER_SECONDS", 3600.0)


@pytest.mark.usefixtures("patient")
async def test_leaving_does_not_wait_for_a_silent_server(dsn: str) -> None:
    async with network_to(dsn) as network, backend_on(network.address) as backend:
        await backend.overview(DEFAULT_WINDOW)
        network.swallow()
        reading = asyncio.create_task(backend.overview(DEFAULT_WINDOW))
        await asyncio.sleep(0.1)

        async with asyncio.timeout(SOON):
            await backend.close()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, DatabaseUnavailable):
                await reading


async def test_the_console_says_that_the_database_is_lost_and_comes_back_by_itself(dsn: str) -> None:
    async with plain(dsn) as conn, network_to(dsn) as network, backend_on(network.address) as backend:
        letter = await add_dead_letter(conn, error="ValueError: lost and found")
        app = console(backend)  # type: ignore[arg-type]  # the real one

        async with app.run_test(size=(120, 36)) as pilot:
            await pilot.press("5")
            await shows(pilot, f"dead letter {letter}", "✓ live")
            network.cut()
            await shows(pilot, "database lost", "ValueError: lost and found")
            network.mend()
            await pilot.press("r")

            await shows(pilot, "✓ live")


@pytest.mark.usefixtures("patient")
async def test_the_console_leaves_at_once_though_the_server_is_silent(dsn: str) -> None:
    async with network_to(dsn) as network, backend_on(network.address) as backend:
        app = console(backend)  # type: ignore[arg-type]  # the real one

        async with asyncio.timeout(SOON), app.run_test(size=(120, 36)) as pilot:
            await shows(pilot, "✓ live")
            network.swallow()
            await pilot.pause(0.3)
            await pilot.press("q")


async def test_two_consoles_that_press_plus_get_two_workers(dsn: str) -> None:
    async with plain(dsn) as conn, backend_on(dsn) as one, backend_on(dsn) as other:
        await add_pool(conn, wanted=2)

        await asyncio.gather(one.scale_by("host-a", "emails", 1), other.scale_by("host-a", "emails", 1))

        assert await value_of(conn, "SELECT wanted FROM worker_pools") == 4


async def test_a_letter_that_somebody_else_replayed_is_refused_with_his_name(dsn: str) -> None:
    async with plain(dsn) as conn, backend_on(dsn) as backend:
        letter = await add_dead_letter(conn)
        await conn.execute("SELECT * FROM replay_dead_letters(ARRAY[%s::bigint], 'bob')", (letter,))

        result = await backend.replay([letter])

        assert result.done == 0
        assert "already replayed by bob" in str(result.items[0].refusal)


async def test_the_address_in_the_header_holds_no_password() -> None:
    backend = PostgresBackend("postgresql://app:s3cret@db-1:6432/jobs")

    assert backend.address == "app@db-1:6432/jobs"
    await backend.close()


async def test_a_wrong_address_is_told_as_an_outage() -> None:
    backend = PostgresBackend("postgresql://nobody@127.0.0.1:1/nothing")

    with pytest.raises(DatabaseUnavailable):
        await backend.overview(timedelta(minutes=1))
    await backend.close()
