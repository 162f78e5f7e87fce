"""Reads in the background, and answers a scrape from memory: a scrape never waits for the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.metrics.exposition import families, health_families
from pgq_core.metrics.figures import Reading
from pgq_core.metrics.reader import MetricsReader
from pgq_core.metrics.totals import BASE_EVERY
from pgq_core.plain_settings import AnySettings
from pgq_core.queries import Queries
from pgq_core.service import PeriodicService

INTERVAL: Final = 5.0
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_STATEMENT_TIMEOUT: Final = 10.0
_SILENT_AFTER: Final = 4
"""Intervals without a reading after which the database counts as away."""


class MetricsService(PeriodicService):
    """Keeps the latest reading. Every process that runs one shows the same totals: those of the whole database."""

    name = "metrics"
    longest_turn = 30.0

    def __init__(self, settings: AnySettings, *, interval: float = INTERVAL, base_every: float = BASE_EVERY) -> None:
        super().__init__(interval=interval)
        self._dsn = settings.dsn or ""
        self._reader = MetricsReader(
            Queries(settings.db_schema),
            stale_limit=timedelta(seconds=settings.stale_limit),
            base_every=base_every,
        )
        self._conn: AsyncConnection[Any] | None = None
        self._reading: Reading | None = None
        self._failures = 0
        self._is_up = False
        self.registry = CollectorRegistry()
        self.registry.register(_Exposed(self))
        ProcessCollector(registry=self.registry)

    async def run_once(self) -> None:
        try:
            self._reading = await self._reader.read(await self._connection())
        except BaseException:  # also given up for having taken too long
            self._failures += 1
            self._is_up = False
            await self.stopped()  # whatever state the connection is in, the next turn takes another
            raise
        self._is_up = True

    async def stopped(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            await conn.close()

    def exposition(self) -> bytes:
        """The text format, from memory; usable from any thread."""
        return generate_latest(self.registry)

    def current_families(self) -> Iterator[Metric]:
        reading, now = self._reading, time.monotonic()
        # A database that has fallen silent lets the next reading wait, long before that fails.
        is_up = self._is_up and reading is not None and now - reading.read_at < _SILENT_AFTER * self.interval
        yield from health_families(reading, now=now, failures=self._failures, is_up=is_up)
        if reading is not None:
            yield from families(reading)

    async def _connection(self) -> AsyncConnection[Any]:
        if self._conn is None or self._conn.closed:
            self._conn = await connect(
                self._dsn, application_name="pgq metrics", statement_timeout=_STATEMENT_TIMEOUT, read_only=True
            )
        return self._conn


class _Exposed(Collector):
    def __init__(self, service: MetricsService) -> None:
        self._service = service

    def describe(self) -> list[Metric]:
        """Nothing: the registry need not read once to learn the names."""
        return []

    def collect(self) -> Iterator[Metric]:
        return self._service.current_families()
