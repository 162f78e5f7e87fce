"""The one seam between the console and what it watches: immutable pictures out, a dozen verbs in."""

from __future__ import annotations

from pgq_tui.backend.protocol import PAGE_SIZE, Backend

__all__ = ["PAGE_SIZE", "Backend"]
