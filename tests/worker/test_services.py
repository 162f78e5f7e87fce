"""Services that run for ever, and the listener."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from pgq_core.errors import DatabaseUnavailable
from pgq_core.listener import Listener
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.service import Pauses, PeriodicService
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async


class Counting(PeriodicService):
    name = "counting"

    def __init__(self, *errors: Exception | None, interval: float = 0.001) -> None:
        super().__init__(interval=interval, random=Random(1))
        self.turns = 0
        self._errors = list(errors)

    async def run_once(self) -> None:
        self.turns += 1
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error


async def run_for_a_while(service: Counting, turns: int) -> None:
    stop = asyncio.Event()
    task = asyncio.create_task(service.run(stop))
    await eventually_async(lambda: service.turns >= turns)
    stop.set()
    await asyncio.wait_for(task, 60)


async def test_service_survives_trouble_and_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pauses, "next", lambda self: 0.001)
    service = Counting(DatabaseUnavailable("gone"), DatabaseUnavailable("gone"), ValueError("a fault of ours"), None)

    with capture_logs() as logs:
        await run_for_a_while(service, 5)

    assert [line["event"] for line in logs] == [
        "service_waits_for_database",
        "service_failed",
        "service_works_again",
    ]
    health = service.health()
    assert (health.failures, health.last_error) == (0, None)
    assert health.last_good_age is not None


async def test_turn_that_never_ends_is_given_up_and_the_next_one_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(Counting):
        longest_turn = 0.01

        async def run_once(self) -> None:
            await super().run_once()
            if self.turns == 1:
                await asyncio.Event().wait()

    monkeypatch.setattr(Pauses, "next", lambda _: 0.0)
    service = Silent()

    await run_for_a_while(service, turns=2)

    assert service.health().last_error is None


async def test_nudge_starts_the_next_turn_at_once() -> None:
    service = Counting(interval=1000.0)
    stop = asyncio.Event()
    task = asyncio.create_task(service.run(stop))
    await eventually_async(lambda: service.turns == 1)

    service.nudge()

    await eventually_async(lambda: service.turns == 2)
    stop.set()
    await task


def test_pauses_average_a_second_and_stay_bounded() -> None:
    pauses = Pauses(random=Random(7))

    drawn = [pauses.next() for _ in range(1000)]

    assert min(drawn) >= 0.5
    assert max(drawn) <= 4.5
    assert sum(drawn) / len(drawn) >= 1.0


def test_repeated_trouble_is_said_once_a_minute_and_when_it_is_over() -> None:
    now = [0.0]
    with capture_logs() as logs:
        trouble = RepeatedTrouble(get_logger("test"), clock=lambda: now[0])
        for second in range(150):
            now[0] = float(second)
            trouble.say("away", OSError("x"))
        trouble.over("back")
        trouble.over("back")

    assert [(line["event"], line.get("repeated")) for line in logs] == [
        ("away", None),
        ("away", 59),
        ("away", 59),
        ("back", None),
    ]


async def listening(database: QueueDatabase) -> Listener:
    listener = Listener(database.dsn, "pgq_core", application_name="test listener")
    await listener.connection()
    return listener


async def test_listener_hears_words_between_statements(database: QueueDatabase) -> None:
    listener = await listening(database)

    waiting = asyncio.create_task(listener.wait(300))
    database.run("SELECT pg_notify(wake_channel(), 'jobs')")
    assert await asyncio.wait_for(waiting, 60) == {"jobs"}

    database.run("SELECT pg_notify(wake_channel(), 'cancel')")
    await (await listener.connection()).execute("SELECT 1")
    assert await asyncio.wait_for(listener.wait(300), 60) == {"cancel"}
    await listener.close()


async def test_listener_is_woken_before_and_while_it_waits(database: QueueDatabase) -> None:
    listener = await listening(database)

    listener.wake()
    assert await asyncio.wait_for(listener.wait(300), 60) == frozenset()
    waiting = asyncio.create_task(listener.wait(300))
    await asyncio.sleep(0)
    listener.wake()
    assert await asyncio.wait_for(waiting, 60) == frozenset()
    await listener.close()


async def test_listener_notices_a_lost_connection_and_opens_another(database: QueueDatabase) -> None:
    listener = await listening(database)
    first = await listener.connection()

    database.run("SELECT pg_terminate_backend(%s)", first.info.backend_pid)
    await asyncio.wait_for(listener.wait(300), 60)
    second = await listener.connection()

    assert second is not first
    database.run("SELECT pg_notify(wake_channel(), 'jobs')")
    assert await asyncio.wait_for(listener.wait(300), 60) == {"jobs"}
    await listener.close()


async def test_listener_without_a_database_says_so_at_once(database: QueueDatabase) -> None:
    listener = Listener("postgresql://127.0.0.1:1/nowhere", "pgq_core", application_name="test")

    with pytest.raises(DatabaseUnavailable):
        await listener.connection()
    assert await asyncio.wait_for(listener.wait(0.01), 60) == frozenset()


async def test_listener_proves_a_silent_connection(database: QueueDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgq_core.listener.PROBE_AFTER", 0.05)
    listener = await listening(database)
    probes: list[Any] = []
    answers = Listener._answers

    async def count(self: Listener, conn: psycopg.AsyncConnection[Any]) -> bool:
        probes.append(conn)
        return await answers(self, conn)

    monkeypatch.setattr(Listener, "_answers", count)
    async with asyncio.timeout(60):
        while not probes:
            await listener.wait(0.3)

    await listener.close()
