"""The latest picture of all queues, read at most once a second whoever asks."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from pgq_core.api.connections import Connections
from pgq_core.domain.snapshot import Overview
from pgq_core.domain.window import WINDOWS
from pgq_core.inspector import Inspector

FRESH_FOR: Final = 1.0


class QueueBoard:
    def __init__(self, inspector: Inspector, connections: Connections) -> None:
        self._inspector = inspector
        self._connections = connections
        self._lock = asyncio.Lock()
        self._overview: Overview | None = None
        self._read_at = float("-inf")

    async def overview(self) -> Overview:
        async with self._lock:
            if self._overview is None or time.monotonic() - self._read_at >= FRESH_FOR:
                async with self._connections.connection() as conn:
                    self._overview = await self._inspector.overview(conn, WINDOWS["1m"])
                self._read_at = time.monotonic()
            return self._overview
