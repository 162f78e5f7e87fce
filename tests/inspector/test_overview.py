from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.domain.snapshot import Count, Overview, QueueView
from pgq_core.domain.window import WINDOWS
from pgq_core.inspector import Inspector, depth_memory
from pgq_core.inspector import overview as overview_module
from pgq_core.queries import Queries
from tests.conftest import SCHEMA
from tests.support.zoo import (
    add_dead_letter,
    add_job,
    add_pool,
    add_running_job,
    add_stats,
    add_worker,
    value_of,
)

Conn = AsyncConnection[Any]


def queue_of(overview: Overview, name: str = "default") -> QueueView:
    return next(queue for queue in overview.queues if queue.name == name)


async def test_empty_schema_is_an_empty_picture(conn: Conn, inspector: Inspector) -> None:
    overview = await inspector.overview(conn)

    assert (overview.queues, overview.workers, overview.pools, overview.supervisors) == ((), (), (), ())
    assert overview.dead_unresolved == Count(0)
    assert overview.server.database == conn.info.dbname
    assert overview.server.is_read_only is False
    assert overview.server.ping > 0


async def test_queue_shows_what_lies_in_it_by_state(conn: Conn, inspector: Inspector) -> None:
    await add_job(conn)
    await add_job(conn, due_in=timedelta(hours=1))
    await add_job(conn, due_in=timedelta(hours=1), attempts=2, last_error="ValueError: later")
    await add_job(conn, waiting_for="tenant")
    await add_running_job(conn)
    await add_dead_letter(conn)

    queue = queue_of(await inspector.overview(conn))

    assert queue.pending == Count(1)
    assert queue.scheduled == Count(2)
    assert queue.retrying == Count(1)
    assert queue.waiting == Count(1)
    assert queue.running == 1
    assert queue.dead == Count(1)
    assert queue.last_error == "ValueError: later"


async def test_queues_are_found_wherever_they_are_mentioned(conn: Conn, inspector: Inspector) -> None:
    await add_job(conn, queue="pending")
    await add_job(conn, queue="scheduled", due_in=timedelta(hours=1))
    await add_job(conn, queue="waiting", waiting_for="x")
    await add_running_job(conn, queue="running")
    await add_dead_letter(conn, queue="dead")
    await add_worker(conn, queues=("served",))
    await conn.execute("SELECT pause('paused', 'why', 'ops')")

    overview = await inspector.overview(conn)

    names = [queue.name for queue in overview.queues]
    assert names == ["dead", "paused", "pending", "running", "scheduled", "served", "waiting"]
    paused = queue_of(overview, "paused")
    assert (paused.paused, paused.paused_by, paused.pause_reason) == (True, "ops", "why")


async def test_oldest_pending_job_is_found_behind_younger_ones_of_higher_priority(
    conn: Conn, inspector: Inspector
) -> None:
    old = await add_job(conn, priority=-5)
    await add_job(conn, priority=3)
    await add_job(conn, priority=0)
    await conn.execute(
        "UPDATE jobs SET not_before = now() - interval '1 hour', created_at = now() - interval '1 hour' WHERE id = %s",
        (old,),
    )

    queue = queue_of(await inspector.overview(conn))

    expected = await value_of(conn, "SELECT created_at FROM jobs WHERE id = %s", old)
    assert queue.oldest_pending_at == expected


async def test_count_stops_at_the_cap_and_becomes_an_estimate_that_is_kept_for_a_while(
    conn: Conn, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (overview_module, depth_memory):
        monkeypatch.setattr(module, "DEPTH_CAP", 100)
    await conn.execute(
        """INSERT INTO jobs (queue, payload) SELECT CASE WHEN n %% 4 = 0 THEN 'small' ELSE 'large' END, '{"type": "x"}'
             FROM generate_series(1, 4000) n""".replace("%%", "%").encode()
    )
    await conn.execute("ANALYZE jobs")

    overview = await inspector.overview(conn)

    large, small = queue_of(overview, "large").pending, queue_of(overview, "small").pending
    assert (large.exact, small.exact) == (False, False)
    assert 2700 <= large.value <= 3300
    assert 800 <= small.value <= 1200
    await conn.execute("DELETE FROM jobs WHERE queue = 'large'")
    assert queue_of(await inspector.overview(conn), "small").pending == small


async def test_deep_queue_is_counted_exactly_again_once_it_has_been_worked_off(
    conn: Conn, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (overview_module, depth_memory):
        monkeypatch.setattr(module, "DEPTH_CAP", 100)
    monkeypatch.setattr(depth_memory, "COUNT_AGAIN_AFTER", timedelta(0))
    await conn.execute("""INSERT INTO jobs (payload) SELECT '{"type": "x"}' FROM generate_series(1, 150)""")
    assert queue_of(await inspector.overview(conn)).pending == Count(100, exact=False)
    await conn.execute("DELETE FROM jobs WHERE id > 30")

    assert queue_of(await inspector.overview(conn)).pending == Count(30)


async def test_rates_percentiles_and_failure_share_are_those_of_the_last_minute(
    conn: Conn, inspector: Inspector
) -> None:
    await add_job(conn)
    await add_stats(conn, succeeded=80, retried=15, dead=5, seconds=0.1)
    await add_stats(conn, age=timedelta(minutes=5), succeeded=1000, seconds=60)

    queue = queue_of(await inspector.overview(conn))

    assert queue.failure_share == pytest.approx(0.2)
    assert 100 / 65 <= queue.rate_out <= 100 / 60
    assert queue.p50 is not None
    assert queue.p95 is not None
    assert 0.064 <= queue.p50 <= queue.p95 <= 0.128
    assert sum(queue.trend) * 30 == pytest.approx(1100)
    assert len(queue.trend) == 31


async def test_inflow_is_derived_from_growth_and_what_left(
    conn: Conn, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depth_memory, "INFLOW_LEAST", timedelta(0))
    await add_job(conn)
    await inspector.overview(conn)
    await conn.execute("""INSERT INTO jobs (payload) SELECT '{"type": "x"}' FROM generate_series(1, 10)""")

    queue = queue_of(await inspector.overview(conn))

    assert queue.rate_in is not None
    assert queue.rate_in > 0


async def test_chart_has_a_point_for_every_bucket_the_empty_ones_too(conn: Conn, inspector: Inspector) -> None:
    await add_stats(conn, age=timedelta(minutes=2), succeeded=7, dead=2, seconds=1)
    await add_stats(conn, queue="other", age=timedelta(minutes=2), succeeded=1, seconds=1)

    overview = await inspector.overview(conn, WINDOWS["15m"])

    assert len(overview.throughput) == 181
    steps = {b.at - a.at for a, b in zip(overview.throughput, overview.throughput[1:], strict=False)}
    assert steps == {timedelta(seconds=5)}
    (point,) = [point for point in overview.throughput if point.succeeded]
    assert (point.succeeded, point.dead, point.seconds) == (8, 2, 5.0)
    assert point.p50 is not None


@pytest.mark.parametrize(("name", "points"), [("1m", 13), ("1h", 241), ("6h", 181), ("24h", 145), ("7d", 169)])
async def test_every_window_is_cut_into_at_most_240_whole_buckets(
    conn: Conn, inspector: Inspector, name: str, points: int
) -> None:
    await add_stats(conn, age=WINDOWS[name] / 2, succeeded=3)

    overview = await inspector.overview(conn, WINDOWS[name])

    assert len(overview.throughput) == points
    assert sum(point.succeeded for point in overview.throughput) == 3


async def test_statistics_that_were_committed_late_are_still_counted(conn: Conn, inspector: Inspector) -> None:
    await add_stats(conn, succeeded=1)
    await inspector.overview(conn)
    await add_stats(conn, age=timedelta(seconds=5), succeeded=10)

    overview = await inspector.overview(conn)

    assert sum(point.succeeded for point in overview.throughput) == 11


async def test_types_that_no_live_worker_knows_are_named(conn: Conn, inspector: Inspector) -> None:
    await add_worker(conn, job_types=("send_email",))
    await add_worker(conn, "w-2", job_types=("bill",), stopped=True)
    await add_job(conn, "send_email")
    await add_job(conn, "bill")
    await add_job(conn, "bill", queue="unserved")

    overview = await inspector.overview(conn)

    assert queue_of(overview).unknown_types == ("bill",)
    assert queue_of(overview, "unserved").unknown_types == ()


async def test_capacity_counts_live_workers_and_stale_ones_are_marked(conn: Conn, inspector: Inspector) -> None:
    await add_worker(conn, "w-1", concurrency=4)
    await add_worker(conn, "w-2", concurrency=3, state="draining")
    await add_worker(conn, "w-3", concurrency=2, beat_age=timedelta(minutes=5))
    await add_worker(conn, "w-4", concurrency=1, state="stopped", stopped=True)

    overview = await inspector.overview(conn)

    assert queue_of(overview).capacity == 4
    assert {worker.id: worker.is_stale for worker in overview.workers} == {
        "w-1": False,
        "w-2": False,
        "w-3": True,
        "w-4": False,
    }


async def test_pools_and_supervisors_are_seen_with_and_without_each_other(conn: Conn, inspector: Inspector) -> None:
    await add_pool(conn, "emails", host="host-a", wanted=2)
    await add_pool(conn, "reports", host="host-a")
    await add_pool(conn, "emails", host="host-b")
    await add_worker(conn, "w-1", host="host-a", pool="emails")
    await add_worker(conn, "w-2", host="host-a", pool="emails", state="draining")
    await conn.execute(
        """INSERT INTO supervisors (host, supervisor_id, pid, pools) VALUES
           ('host-a', 's-1', 1, '{emails,reports}'), ('host-c', 's-2', 2, '{}')"""
    )

    overview = await inspector.overview(conn)

    pools = {(pool.host, pool.name): pool for pool in overview.pools}
    emails = pools["host-a", "emails"]
    assert (emails.wanted, emails.alive, emails.draining, emails.has_supervisor) == (2, 2, 1, True)
    assert pools["host-b", "emails"].has_supervisor is False
    assert [supervisor.host for supervisor in overview.supervisors] == ["host-a", "host-c"]


async def test_a_tick_is_at_most_six_statements(
    conn: Conn, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pgq_core.queries.statement import Statement

    names: list[str] = []
    original = Statement._factory

    def counted(statement: Statement[Any]) -> Any:
        names.append(statement.name)
        return original(statement)

    monkeypatch.setattr(Statement, "_factory", counted)
    await inspector.overview(conn, WINDOWS["24h"])
    first = list(names)
    names.clear()
    await inspector.overview(conn, WINDOWS["24h"])

    assert len(first) == 6
    assert sorted(names) == ["read_pools", "read_queues", "read_server", "read_stats", "read_workers"]


async def test_connection_serves_on_after_a_tick_that_took_too_long(dsn: str, conn: Conn, inspector: Inspector) -> None:
    await conn.execute("SET statement_timeout = 50")
    locker = await connect(dsn, application_name="locker")
    async with locker.transaction():
        await locker.execute("LOCK TABLE workers IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(psycopg.errors.QueryCanceled):
            await inspector.overview(conn)
    await locker.close()

    await conn.execute("SET statement_timeout = 0")
    assert (await inspector.overview(conn)).queues == ()


async def test_role_that_may_only_select_sees_the_picture(dsn: str, conn: Conn) -> None:
    role = f"reader_{conn.info.dbname}"
    await conn.execute(f"CREATE ROLE {role}".encode())
    try:
        await conn.execute(f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role}".encode())
        await conn.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {role}".encode())
        await add_job(conn)
        await conn.execute(f"SET ROLE {role}".encode())

        overview = await Inspector(Queries(SCHEMA)).overview(conn)

        assert queue_of(overview).pending == Count(1)
        assert overview.inserted_total is None
    finally:
        await conn.execute("RESET ROLE")
        await conn.execute(f"DROP OWNED BY {role}".encode())
        await conn.execute(f"DROP ROLE {role}".encode())
