"""NOTIFY is a hint: once a statement, and only if somebody waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.schema.sessions import Session, session, value


@pytest.fixture
def conn(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        yield opened


@pytest.fixture
def listener(dsn: str) -> Iterator[Session]:
    with session(dsn) as opened:
        opened.execute(f"LISTEN {value(opened, 'SELECT wake_channel()')}")
        yield opened


def heard(listener: Session, conn: Session) -> list[str]:
    """What was said before a last word of our own, so that silence needs no waiting time."""
    conn.execute("SELECT pg_notify(wake_channel(), 'last word')")
    said = []
    for notice in listener.notifies(timeout=60):
        if notice.payload == "last word":
            return said
        said.append(notice.payload)
    raise AssertionError("the last word was not heard")


def test_nobody_is_told_while_nobody_waits(conn: Session, listener: Session) -> None:
    conn.execute("INSERT INTO worker_waits VALUES ('w', false)")

    conn.execute("SELECT enqueue('a')")

    assert heard(listener, conn) == []


def test_a_statement_of_many_rows_tells_once(conn: Session, listener: Session) -> None:
    conn.execute("INSERT INTO worker_waits VALUES ('w', true), ('v', true)")

    conn.execute("""INSERT INTO jobs (payload) SELECT '{"type": "a"}' FROM generate_series(1, 100)""")

    assert heard(listener, conn) == ["jobs"]


def test_nothing_is_told_of_a_rolled_back_insert(dsn: str, conn: Session, listener: Session) -> None:
    conn.execute("INSERT INTO worker_waits VALUES ('w', true)")
    with session(dsn, autocommit=False) as producer:
        producer.execute("SELECT enqueue('a')")
        producer.rollback()

    assert heard(listener, conn) == []


def test_updates_and_deletes_tell_nobody(conn: Session, listener: Session) -> None:
    conn.execute("SELECT enqueue('a')")
    conn.execute("INSERT INTO worker_waits VALUES ('w', true)")

    conn.execute("UPDATE jobs SET locked_by = 'w', claim_token = 1")
    conn.execute("DELETE FROM jobs")

    assert heard(listener, conn) == []


def test_resuming_a_queue_wakes_those_who_wait(conn: Session, listener: Session) -> None:
    conn.execute("SELECT pause('q')")
    conn.execute("SELECT resume('q')")
    assert heard(listener, conn) == []
    conn.execute("INSERT INTO worker_waits VALUES ('w', true)")

    conn.execute("SELECT resume('q')")

    assert heard(listener, conn) == ["jobs"]
