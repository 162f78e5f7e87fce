"""A keeper's one connection: beats at their time, errands between them, words heard while it rests."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection

from pgq_core.database import is_transient, translated
from pgq_core.errors import DatabaseUnavailable
from pgq_core.listener import Listener
from pgq_core.logs import RepeatedTrouble, get_logger
from pgq_core.service import Pauses

T = TypeVar("T")
Errand = Callable[[AsyncConnection[Any]], Awaitable[Any]]

CALL_LIMIT: Final = 10.0
"""Seconds after which an answer is no longer waited for: the connection is thrown away instead."""

BEHIND_A_LOCK: Final = 3.0
"""Seconds until an errand that met a lock is tried again."""

LAST_WORD: Final = 0.1
"""Seconds that the desk's task has to end."""


@dataclass(slots=True, eq=False)
class _Asked:
    errand: Errand
    answer: asyncio.Future[Any]
    is_patient: bool
    not_before: float = 0.0
    """On the monotonic clock: it met somebody's lock, and lets the others go first."""


class DatabaseDesk:
    """Whoever needs the database asks here; one task does all, so that one connection is enough."""

    def __init__(
        self,
        listener: Listener,
        *,
        beat: Errand,
        interval: float,
        pauses: Pauses,
        on_words: Callable[[frozenset[str]], None],
        on_change: Callable[[bool, str], None],
    ) -> None:
        self._listener = listener
        self._beat = beat
        self._interval = interval
        self._pauses = pauses
        self._on_words = on_words
        self._on_change = on_change
        self._asked: deque[_Asked] = deque()
        self._beat_at = 0.0
        self._is_away = False
        self._is_closing = False
        self._calling_since: float | None = None
        """On the monotonic clock: the server owes an answer."""
        self._task: asyncio.Task[None] | None = None
        self._logger = get_logger("pgq.keeper")
        self._trouble, self._locks = RepeatedTrouble(self._logger), RepeatedTrouble(self._logger)

    def open(self) -> None:
        self._task = asyncio.create_task(self._run(), name="keeper's desk")

    async def do(self, errand: Callable[[AsyncConnection[Any]], Awaitable[T]], *, patient: bool) -> T:
        """Runs the errand on the connection. Patient: however long the database is away; else DatabaseUnavailable."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._asked.append(_Asked(errand, answer, patient))
        self._listener.wake()
        return await answer

    def silent_for(self) -> float:
        """Seconds for which the server has owed an answer."""
        return 0.0 if self._calling_since is None else time.monotonic() - self._calling_since

    def beat_now(self) -> None:
        self._beat_at = 0.0
        self._listener.wake()

    async def close(self) -> None:
        """Ends the task; errands that are still waiting are given up."""
        self._is_closing = True
        self._listener.wake()
        if self._task is not None:
            self._task.cancel()
            # A statement on a connection whose other end is silent does not end at once: it is left behind.
            await asyncio.wait([self._task], timeout=LAST_WORD)
        for asked in self._asked:
            asked.answer.cancel()
        await self._listener.close()

    async def _run(self) -> None:
        while not self._is_closing:
            pause = max(await self._turn(), 0.0)
            words = await self._listener.wait(pause)
            if words:
                self._on_words(words)

    async def _turn(self) -> float:
        """Everything that is due now; answers how long to rest."""
        try:
            async with self._call():
                conn = await self._listener.connection()
            await self._beat_when_due(conn)
            while (asked := self._next_asked()) is not None:
                await self._do_errand(conn, asked)
                await self._beat_when_due(conn)
        except (psycopg.Error, DatabaseUnavailable, OSError, TimeoutError) as error:
            return await self._give_way(error)
        except Exception:  # a fault of ours must not end the beats of all runners
            self._logger.exception("keeper_failed")
            return self._pauses.next()
        self._say_back()
        return min([self._beat_at, *(asked.not_before for asked in self._asked)]) - time.monotonic()

    async def _beat_when_due(self, conn: AsyncConnection[Any]) -> None:
        now = time.monotonic()
        if now >= self._beat_at:
            async with self._call():
                await self._beat(conn)
            self._beat_at = now + self._interval

    @contextlib.asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        self._calling_since = time.monotonic()
        try:
            async with asyncio.timeout(CALL_LIMIT):
                yield
        finally:
            self._calling_since = None

    def _next_asked(self) -> _Asked | None:
        while self._asked and self._asked[0].answer.done():  # whoever asked has gone
            self._asked.popleft()
        now = time.monotonic()
        due = [asked for asked in self._asked if asked.not_before <= now]
        return min(due, key=lambda asked: asked.not_before, default=None)  # those that met locks before come last

    async def _do_errand(self, conn: AsyncConnection[Any], asked: _Asked) -> None:
        try:
            async with self._call():
                answer = await asked.errand(conn)
        except psycopg.errors.LockNotAvailable as error:
            self._wait_for_lock(asked, error)
        except (psycopg.Error, DatabaseUnavailable, OSError, TimeoutError) as error:
            if isinstance(error, TimeoutError):
                asked.not_before = time.monotonic() + BEHIND_A_LOCK  # perhaps it alone is held up
            elif not is_transient(error):
                self._answer(asked, error)
                return
            raise
        except Exception as error:  # noqa: BLE001 - belongs to whoever asked
            self._answer(asked, error)
        else:
            self._asked.remove(asked)
            if not asked.answer.done():
                asked.answer.set_result(answer)

    def _wait_for_lock(self, asked: _Asked, error: psycopg.Error) -> None:
        """Somebody has locked a row that it needs: no reason to keep the beats and the other errands waiting."""
        self._locks.say("keeper_meets_a_lock", error)
        asked.not_before = time.monotonic() + BEHIND_A_LOCK
        if not asked.is_patient:
            self._answer(asked, error)

    def _answer(self, asked: _Asked, error: BaseException) -> None:
        self._asked.remove(asked)
        if not asked.answer.done():
            asked.answer.set_exception(translated(error) if isinstance(error, psycopg.Error) else error)

    async def _give_way(self, error: Exception) -> float:
        """The database is away: those who cannot wait are told so."""
        await self._listener.drop()
        self._trouble.say("keeper_waits_for_database", error)
        if not self._is_away:
            self._is_away = True
            self._on_change(True, str(error))
        cause = error if isinstance(error, DatabaseUnavailable) else DatabaseUnavailable(str(error) or "no answer")
        for asked in [asked for asked in self._asked if not asked.is_patient]:
            self._answer(asked, cause)
        return self._pauses.next()

    def _say_back(self) -> None:
        self._pauses.reset()
        if self._is_away:
            self._is_away = False
            self._trouble.over("keeper_works_again")
            self._on_change(False, "")
