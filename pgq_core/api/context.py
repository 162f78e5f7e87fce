"""What the routes of one application share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

from pgq_core.api.connections import Connections
from pgq_core.api.intake import Intake
from pgq_core.api.job_types import JobTypes
from pgq_core.api.patience import Patience
from pgq_core.api.queue_board import QueueBoard
from pgq_core.api.readiness import Readiness
from pgq_core.api.settings import ApiSettings
from pgq_core.api.tokens import ALL_SCOPES, Caller, TokenBook
from pgq_core.api.traffic import Traffic
from pgq_core.domain.masking import Mask
from pgq_core.domain.payload import MAX_BYTES
from pgq_core.errors import ReadOnlyRefused
from pgq_core.handlers import Registry
from pgq_core.inspector import Inspector
from pgq_core.job_queue import AsyncJobQueue
from pgq_core.metrics.service import MetricsService
from pgq_core.operations import Operations, local_operator
from pgq_core.queries import Queries
from pgq_core.service import loops_of
from pgq_core.settings import Settings

_ENQUEUEING, _LOOKING, _BULK = 8, 6, 2
_LEAVING = 0.5
"""Seconds in which the services end their turns; one that waits for a silent database does not."""


class ApiContext:
    """Settings, connections and services of one server. Everything is opened at its first use."""

    def __init__(self, settings: Settings, api: ApiSettings) -> None:
        dsn = settings.dsn or ""
        self.settings = settings
        self.api = api
        self.queries = Queries(settings.db_schema)
        self.patience = Patience(api.timeout)
        read_only = settings.read_only
        self.enqueueing = Connections(
            dsn,
            size=_ENQUEUEING,
            patience=api.timeout,
            application_name="pgq api",
            pinned_plans=True,
            read_only=read_only,
        )
        self.looking = Connections(
            dsn, size=_LOOKING, patience=api.timeout, application_name="pgq api", read_only=read_only
        )
        self.bulk = Connections(
            dsn, size=_BULK, patience=api.bulk_timeout, application_name="pgq api bulk", read_only=read_only
        )
        # An empty registry: this server has no handlers, what counts is what workers announced.
        self.queue = AsyncJobQueue(
            dsn,
            schema=settings.db_schema,
            registry=Registry(),
            max_attempts=settings.max_attempts,
            max_payload=max(MAX_BYTES, api.max_body),
        )
        self.intake = Intake(self.queue, self.enqueueing, self.patience)
        self.job_types = JobTypes(self.queries, self.enqueueing, accept_unknown=api.unknown_types == "accept")
        self.tokens = TokenBook(self.queries, self.looking)
        self.inspector = Inspector(self.queries, stale_limit=timedelta(seconds=settings.stale_limit))
        self.board = QueueBoard(self.inspector, self.looking)
        self.mask = Mask(settings.mask_keys)
        self.metrics = MetricsService(settings)
        self.traffic = Traffic(self.metrics.registry)
        self.readiness = Readiness(dsn, settings.db_schema)
        self.own_name = settings.operator or local_operator()
        self.local_caller = Caller(self.own_name, ALL_SCOPES)
        self.asks_for_tokens = api.asks_for_tokens
        self._services = (self.readiness, self.metrics)
        self.is_stopping = False

    def loop_ages(self) -> dict[str, float]:
        """Seconds since the last good turn of each background loop."""
        return {loop.name: round(loop.age, 1) for loop in loops_of(self._services)}

    def stuck_loop(self) -> str | None:
        """A loop that ends no turn any more, neither well nor badly. One whose turns fail says so in the metrics."""
        for service in self._services:
            if (age := service.stuck_for()) is not None:
                return f"the loop {service.name!r} of this server has not turned for {age:.0f} s"
        return None

    def operations(self, operator: str) -> Operations:
        """The verbs, under the caller's name. Raises ReadOnlyRefused on a server that may only look."""
        self.refuse_if_read_only()
        return Operations(self.queries, operator=operator)

    def refuse_if_read_only(self) -> None:
        if self.settings.read_only:
            raise ReadOnlyRefused

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Background services run inside; at the end, work that has begun is finished within the grace."""
        stop = asyncio.Event()
        services = [asyncio.create_task(service.run(stop)) for service in self._services]
        try:
            yield
        finally:
            self.is_stopping = True
            stop.set()
            await self.patience.finish(self.settings.grace)
            await asyncio.wait(services, timeout=_LEAVING)
            for task in services:
                task.cancel()
            for connections in (self.enqueueing, self.looking, self.bulk):
                await connections.close()
            await self.queue.close()
