"""What the shop of the pictures holds at one moment, all made by arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pgq_core.domain.snapshot import (
    JobView,
    PoolView,
    QueueView,
    RunningView,
    RunView,
    StatsPoint,
    SupervisorView,
    WorkerView,
)
from pgq_tui.pictures.shop_clock import HOST, NOW, REMOTE
from pgq_tui.pictures.shop_fleet import shop_pools, shop_supervisor, shop_workers
from pgq_tui.pictures.shop_jobs import shop_jobs, shop_running, shop_runs
from pgq_tui.pictures.shop_letters import ShopLetter, shop_letters
from pgq_tui.pictures.shop_queues import shop_queues


@dataclass
class Shop:
    """Everything the console can ask about, as plain lists that a backend may change."""

    now: datetime = NOW
    queues: list[QueueView] = field(default_factory=list)
    workers: list[WorkerView] = field(default_factory=list)
    pools: list[PoolView] = field(default_factory=list)
    supervisors: list[SupervisorView] = field(default_factory=list)
    runs: list[RunView] = field(default_factory=list)
    running: list[RunningView] = field(default_factory=list)
    jobs: list[JobView] = field(default_factory=list)
    letters: list[ShopLetter] = field(default_factory=list)
    output: dict[str, str] = field(default_factory=dict)
    is_busy: bool = False

    def throughput(self, window: timedelta) -> tuple[StatsPoint, ...]:
        """Finished runs per bucket: mail fails for a while in the last third of a quarter of an hour."""
        if not self.is_busy:
            return ()
        seconds = max(5.0, window.total_seconds() / 180)
        count = int(window.total_seconds() // seconds)
        end = datetime.fromtimestamp(self.now.timestamp() // seconds * seconds, UTC)
        points = ((end - timedelta(seconds=seconds * (count - 1 - index))) for index in range(count))
        return tuple(self._point(at, seconds) for at in points)

    def _point(self, at: datetime, seconds: float) -> StatsPoint:
        ago = (self.now - at).total_seconds()
        rate = 22 + 6 * math.sin(ago / 97) + 3 * math.sin(ago / 23) + 2 * math.sin(ago / 7.3)
        trouble = math.exp(-(((ago - 210) / 70) ** 2))
        retried = rate * (0.03 + 0.32 * trouble)
        dead = 0.35 * math.exp(-(((ago - 150) / 60) ** 2)) + (0.2 if int(ago) % 11 == 0 else 0)
        succeeded = max(rate - retried - dead, 0.0)
        return StatsPoint(
            at,
            seconds,
            succeeded=round(succeeded * seconds),
            retried=round(retried * seconds),
            dead=round(dead * seconds),
            p50=0.19,
            p95=1.4 + 2.2 * trouble,
        )


def empty_shop() -> Shop:
    """A migrated database in which nothing ever happened."""
    return Shop()


def busy_shop() -> Shop:
    """A working morning with something to look at on every screen."""
    return Shop(
        queues=shop_queues(),
        workers=shop_workers(),
        pools=shop_pools(),
        supervisors=[
            shop_supervisor(HOST, 4120, ("images", "mail", "shop")),
            shop_supervisor(REMOTE, 977, ("reports",)),
        ],
        runs=shop_runs(),
        running=shop_running(),
        jobs=shop_jobs(),
        letters=shop_letters(NOW),
        output={"shop-1-mail-5b0e77d1": _OUTPUT, "shop-1-images-90d2be04": _LAST_WORDS},
        is_busy=True,
    )


_OUTPUT = """\
{"event": "worker_started", "worker_id": "shop-1-mail-5b0e77d1", "queues": ["emails"], "concurrency": 10}
{"event": "job_succeeded", "job_id": 880991, "job_type": "send_order_confirmation", "duration_ms": 204}
{"event": "job_retried", "job_id": 880994, "error": "SMTPServerDisconnected", "retry_at": "12:05:19"}
[smtp] 421 4.7.0 try again later
{"event": "job_succeeded", "job_id": 880998, "job_type": "send_password_reset", "duration_ms": 181}
"""

_LAST_WORDS = """\
{"event": "worker_started", "worker_id": "shop-1-images-90d2be04", "queues": ["images"], "concurrency": 4}
{"event": "job_succeeded", "job_id": 880902, "job_type": "resize_image", "duration_ms": 1204}
resize: uploads/5579.tiff is 48,000 x 36,000 pixels, 5.1 GB in memory
"""
