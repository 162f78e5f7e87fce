"""The supervisor's statements, one by one, on a real database."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import dict_row

from pgq_core.queries import Queries

STALE_LIMIT = timedelta(seconds=30)

queries = Queries("pgq_core")


@pytest.fixture
def conn(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def take_lease(conn: Connection[Any], supervisor_id: str, *, dead_id: str | None = None) -> bool:
    statement = queries.take_host_lease(
        host="h1",
        supervisor_id=supervisor_id,
        pid=1,
        pools=["web"],
        version="1",
        stale_limit=STALE_LIMIT,
        dead_id=dead_id,
    )
    return statement.fetch_all_sync(conn) == [supervisor_id]


def announce(conn: Connection[Any], *, wanted: int = 2, minimum: int = 0, maximum: int = 8) -> None:
    queries.announce_pool(
        host="h1",
        name="web",
        queues=["emails"],
        concurrency=4,
        wanted=wanted,
        minimum=minimum,
        maximum=maximum,
        supervisor_id="s1",
    ).execute_sync(conn)


def pool_row(conn: Connection[Any]) -> dict[str, Any]:
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute("SELECT * FROM worker_pools").fetchone()
    assert row is not None
    return row


def test_a_living_supervisor_keeps_its_host(conn: Connection[Any]) -> None:
    assert take_lease(conn, "s1")

    assert not take_lease(conn, "s2")
    found = queries.find_supervisor(host="h1", stale_limit=STALE_LIMIT).fetch_one_sync(conn)
    assert found is not None
    assert (found.supervisor_id, found.is_stale, found.stopping) == ("s1", False, False)


def test_a_stale_supervisor_loses_its_host_and_notices_at_its_next_beat(conn: Connection[Any]) -> None:
    take_lease(conn, "s1")
    conn.execute("UPDATE supervisors SET heartbeat_at = now() - interval '31 seconds'")

    assert take_lease(conn, "s2")
    assert queries.beat_for_host(host="h1", supervisor_id="s1", stopping=False).execute_sync(conn) == 0
    assert queries.beat_for_host(host="h1", supervisor_id="s2", stopping=False).execute_sync(conn) == 1


def test_a_supervisor_known_to_be_dead_is_succeeded_at_once(conn: Connection[Any]) -> None:
    take_lease(conn, "s1")

    assert not take_lease(conn, "s2", dead_id="s0")
    assert take_lease(conn, "s2", dead_id="s1")


def test_a_released_lease_is_free_and_a_loser_cannot_release_its_successors(conn: Connection[Any]) -> None:
    take_lease(conn, "s1")

    queries.release_host_lease(host="h1", supervisor_id="s0").execute_sync(conn)
    assert not take_lease(conn, "s2")
    queries.release_host_lease(host="h1", supervisor_id="s1").execute_sync(conn)
    assert take_lease(conn, "s2")


def test_an_operators_number_outlives_the_announcement_inside_the_hosts_limits(conn: Connection[Any]) -> None:
    announce(conn, wanted=2)
    conn.execute("UPDATE worker_pools SET wanted = 5")

    announce(conn, wanted=1)
    assert pool_row(conn)["wanted"] == 5
    announce(conn, wanted=1, maximum=3)
    assert (pool_row(conn)["wanted"], pool_row(conn)["maximum"]) == (3, 3)


def test_a_pool_that_the_host_does_not_define_is_refused_once_and_said_so(conn: Connection[Any]) -> None:
    announce(conn)
    conn.execute("INSERT INTO worker_pools (host, name, queues) VALUES ('h1', 'evil', '{x}'), ('h2', 'web', '{x}')")

    refuse = queries.refuse_pools(host="h1", defined=["web"], detail="not defined on h1")

    assert refuse.fetch_all_sync(conn) == ["evil"]
    assert refuse.fetch_all_sync(conn) == []
    states = conn.execute("SELECT host, name, state, state_detail FROM worker_pools ORDER BY host, name").fetchall()
    assert states == [
        ("h1", "evil", "refused", "not defined on h1"),
        ("h1", "web", "ok", None),
        ("h2", "web", "ok", None),
    ]


def test_a_report_adds_restarts_and_says_when_the_next_try_is(conn: Connection[Any]) -> None:
    announce(conn)
    for _ in range(2):
        queries.report_pool(
            host="h1", name="web", state="crash_loop", detail="exit code 1", retry_in=60.0, restarts=2
        ).execute_sync(conn)

    row = pool_row(conn)
    assert (row["state"], row["state_detail"], row["restarts"]) == ("crash_loop", "exit code 1", 4)
    assert conn.execute("SELECT retry_at - now() BETWEEN '50 s' AND '61 s' FROM worker_pools").fetchone() == (True,)
    queries.report_pool(host="h1", name="web", state="ok", detail=None, retry_in=None, restarts=0).execute_sync(conn)
    assert pool_row(conn)["retry_at"] is None


def test_lowering_a_pool_stops_at_its_minimum(conn: Connection[Any]) -> None:
    announce(conn, wanted=3, minimum=1)

    for expected in (2, 1, 1):
        queries.lower_pool(host="h1", name="web", by=1, supervisor_id="s1").execute_sync(conn)
        assert pool_row(conn)["wanted"] == expected


def test_only_live_workers_of_the_hosts_pools_are_listed(conn: Connection[Any]) -> None:
    conn.execute(
        """
        INSERT INTO workers (id, host, pool, queues, concurrency, heartbeat_at, stopped_at)
        VALUES ('live', 'h1', 'web', '{a}', 1, now(), NULL),
               ('stale', 'h1', 'web', '{a}', 1, now() - interval '1 minute', NULL),
               ('gone', 'h1', 'web', '{a}', 1, now(), now()),
               ('alone', 'h1', NULL, '{a}', 1, now(), NULL),
               ('elsewhere', 'h2', 'web', '{a}', 1, now(), NULL)
        """
    )

    listed = queries.list_pool_workers(host="h1", stale_limit=STALE_LIMIT).fetch_all_sync(conn)

    assert [(row.id, row.pool, row.wanted, row.running) for row in listed] == [("live", "web", "run", 0)]


def test_outputs_of_several_workers_are_saved_in_one_statement(conn: Connection[Any]) -> None:
    conn.execute(
        "INSERT INTO workers (id, host, queues, concurrency) VALUES ('a', 'h1', '{q}', 1), ('b', 'h1', '{q}', 1)"
    )

    queries.save_outputs({"a": "one\ntwo", "b": "three", "unknown": "x"}).execute_sync(conn)

    rows = conn.execute("SELECT id, last_output FROM workers ORDER BY id").fetchall()
    assert rows == [("a", "one\ntwo"), ("b", "three")]
