"""The queues of the shop: one in trouble, one paused, one nobody serves, three well."""

from __future__ import annotations

import math

from pgq_core.domain.snapshot import Count, QueueView
from pgq_tui.pictures.shop_clock import ago

_TREND_POINTS = 30


def _trend(base: float, swing: float, phase: float) -> tuple[float, ...]:
    return tuple(max(base + swing * math.sin(phase + index / 4), 0.0) for index in range(_TREND_POINTS))


def shop_queues() -> list[QueueView]:
    fading = tuple(max(9.0 - index * 0.45, 0.0) for index in range(_TREND_POINTS))
    return [
        QueueView(
            name="emails",
            pending=Count(812),
            scheduled=Count(98),
            retrying=Count(86),
            running=18,
            capacity=20,
            dead=Count(31),
            oldest_pending_at=ago(minutes=2, seconds=10),
            rate_out=9.1,
            rate_in=18.2,
            failure_share=0.41,
            p50=0.21,
            p95=4.1,
            last_error="SMTPServerDisconnected: Connection unexpectedly closed",
            trend=_trend(8, 3, 0.4),
        ),
        QueueView(
            name="invoices",
            paused=True,
            paused_at=ago(minutes=9, seconds=2),
            paused_by="ada",
            capacity=8,
            pause_reason="tax service down until 12:30",
            pending=Count(371),
            dead=Count(14),
            rate_in=0.7,
            oldest_pending_at=ago(minutes=9, seconds=2),
            last_error="KeyError: 'tax_id'",
            trend=fading,
        ),
        QueueView(
            name="images",
            pending=Count(17),
            scheduled=Count(2),
            retrying=Count(2),
            running=7,
            capacity=8,
            dead=Count(3),
            rate_out=3.2,
            oldest_pending_at=ago(seconds=4),
            rate_in=3.3,
            failure_share=0.012,
            p50=1.31,
            p95=2.7,
            trend=_trend(3, 1, 2),
            last_error="SIGKILL (out of memory)",
        ),
        QueueView(
            name="default",
            pending=Count(0),
            running=2,
            capacity=10,
            rate_out=1.7,
            rate_in=1.7,
            failure_share=0.0,
            p50=0.041,
            p95=0.09,
            trend=_trend(2, 1, 1),
        ),
        QueueView(
            name="reports",
            pending=Count(4),
            scheduled=Count(38),
            running=1,
            capacity=2,
            rate_out=0.3,
            rate_in=0.3,
            oldest_pending_at=ago(seconds=3),
            failure_share=0.0,
            p50=6.2,
            p95=8.2,
            trend=_trend(0.4, 0.2, 3),
        ),
        QueueView(
            name="imports",
            pending=Count(12_400, exact=False),
            oldest_pending_at=ago(hours=3, minutes=12),
            rate_in=0.0,
            unknown_types=("import_catalogue",),
            trend=(0.0,) * _TREND_POINTS,
        ),
    ]
