"""`/metrics` of a process that serves nothing else: a worker or a supervisor with `--metrics-port`."""

from __future__ import annotations

import asyncio

from prometheus_client import start_http_server

from pgq_core.domain.health import LoopHealth
from pgq_core.errors import InvalidSettings
from pgq_core.metrics.service import INTERVAL, MetricsService
from pgq_core.plain_settings import AnySettings


class MetricsServer:
    """A service for those who run services: reads in the background, answers scrapes from a thread of its own.

    Takes the port at once, and raises InvalidSettings when it cannot be had.
    """

    def __init__(self, settings: AnySettings, port: int, *, host: str, interval: float = INTERVAL) -> None:
        self._service = MetricsService(settings, interval=interval)
        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=self._service.registry)
        except OSError as error:
            raise InvalidSettings(f"metrics cannot be served on {host}:{port}: {error.strerror or error}") from error
        self.port = int(self._server.server_port)

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await self._service.run(stop)
        finally:
            await asyncio.to_thread(self._close)

    def loops(self) -> tuple[LoopHealth, ...]:
        return self._service.loops()

    def _close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(1.0)
