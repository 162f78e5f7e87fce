"""What can go wrong with a benchmark itself."""

from __future__ import annotations

from pgq_core.errors import PgqError


class BenchFailed(PgqError):
    """A benchmark could not measure what it was asked to; its figures so far stand."""
