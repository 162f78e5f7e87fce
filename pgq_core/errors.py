"""Every error of pgq_core has one root."""

from __future__ import annotations


class PgqError(Exception):
    """Something in the queue went wrong; each subclass says what, to which id, and what to do."""
