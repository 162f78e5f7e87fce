"""Metrics: totals and depths of the whole database, read in the background and served from memory."""

from __future__ import annotations

from pgq_core.metrics.server import MetricsServer
from pgq_core.metrics.service import MetricsService

__all__ = ["MetricsServer", "MetricsService"]
