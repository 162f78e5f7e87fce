"""Following runs as they end, until somebody stops it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import typer

from pgq_core.cli.given import settings_of
from pgq_core.cli.output import say
from pgq_core.cli.run_views import print_run_line
from pgq_core.cli.session import Session, open_session
from pgq_core.database import first_line, is_transient
from pgq_core.domain.filters import RunFilters
from pgq_core.domain.tail import RunTail
from pgq_core.runtime import use_database

BATCH = 1000
RECONNECT_AFTER = 1.0


def follow(ctx: typer.Context, filters: RunFilters, *, recent: int, poll: float, as_json: bool) -> None:
    """Prints the last `recent` runs and then each new one. A lost database is waited for; Ctrl-C ends it."""
    settings = settings_of(ctx)
    follower = _Follower(filters, recent, poll, lambda run: print_run_line(run, as_json=as_json))
    with use_database(settings, check=not settings.dsn) as database:

        async def forever() -> None:
            while True:
                try:
                    async with open_session(settings, database) as session:
                        await follower.follow(session)
                except Exception as error:
                    if not follower.has_started or not is_transient(error):
                        raise
                    say(f"{first_line(error)}; trying again")
                    await asyncio.sleep(RECONNECT_AFTER)

        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(forever())


class _Follower:
    def __init__(self, filters: RunFilters, recent: int, poll: float, show: Callable[..., None]) -> None:
        self._filters = filters
        self._recent = recent
        self._poll = poll
        self._show = show
        self._tail = RunTail()
        self.has_started = False

    async def follow(self, session: Session) -> None:
        if not self.has_started:
            await self._begin(session)
        while True:
            await asyncio.sleep(self._poll)
            tail = self._tail
            runs = await session.inspector.runs_after(session.conn, tail.last_id, BATCH, self._filters, seen=tail.seen)
            for run in tail.fresh(runs):
                self._show(run)

    async def _begin(self, session: Session) -> None:
        """From the newest run on, whichever the filters let through: what ended before is history."""
        newest = await session.inspector.latest_runs(session.conn, BATCH)
        shown = await session.inspector.latest_runs(session.conn, self._recent, self._filters) if self._recent else ()
        self._tail.fresh(newest)
        for run in reversed(shown):
            self._show(run)
        self.has_started = True
