"""The moment at which the shop stands still, and its names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOW = datetime(2026, 3, 5, 12, 4, 31, tzinfo=UTC)
HOST = "shop-1"
REMOTE = "shop-2"
FIRST_JOB = 881_000
TYPES = (
    ("emails", "send_order_confirmation", 0.21),
    ("images", "resize_image", 1.34),
    ("emails", "send_password_reset", 0.18),
    ("invoices", "make_invoice", 0.62),
    ("emails", "send_order_confirmation", 0.25),
    ("default", "sync_stock", 0.09),
)
"""Queue, job type and usual seconds of the work that comes in, in turn."""


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)
