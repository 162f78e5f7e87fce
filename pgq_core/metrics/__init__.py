"""Metrics: totals and depths of the whole database, read in the background and served from memory."""

from __future__ import annotations

from pgq_core.metrics.starting import metrics_server

__all__ = ["metrics_server"]
