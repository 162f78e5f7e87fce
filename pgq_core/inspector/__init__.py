"""The read side: pictures of queues, workers, runs and dead letters."""

from __future__ import annotations

from pgq_core.inspector.inspector import Inspector

__all__ = ["Inspector"]
