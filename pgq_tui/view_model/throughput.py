"""The throughput of a window as a chart: what went well, what will be tried again, what failed for good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from pgq_core.domain.snapshot import QueueView, StatsPoint
from pgq_tui.view_model.chart_data import ChartData, ChartSeries
from pgq_tui.view_model.palette import Token


def throughput_chart(points: Sequence[StatsPoint], now: datetime, window: timedelta) -> ChartData:
    """Runs per second, stacked.

    >>> from datetime import UTC
    >>> now = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
    >>> chart = throughput_chart([StatsPoint(now, 5.0, succeeded=50, retried=5)], now, timedelta(minutes=1))
    >>> [(one.name, one.values) for one in chart.series]
    [('ok', (10.0,)), ('retry', (1.0,)), ('fail', (0.0,))]
    """
    if not any(point.succeeded or point.retried or _failed(point) for point in points):
        points = ()  # said in words: a line at zero looks like an outage
    return ChartData(
        times=tuple(point.at for point in points),
        bucket=timedelta(seconds=points[0].seconds if points else 5.0),
        now=now,
        window=window,
        series=(
            ChartSeries("ok", Token.OK, tuple(point.succeeded / point.seconds for point in points)),
            ChartSeries("retry", Token.RETRY, tuple(point.retried / point.seconds for point in points), "▒", "="),
            ChartSeries("fail", Token.FAILED, tuple(_failed(point) / point.seconds for point in points), "▓", "x"),
        ),
    )


def _failed(point: StatsPoint) -> int:
    return point.dead + point.lost


def rate_now(points: Sequence[StatsPoint]) -> float | None:
    """Closed runs per second over the last minute of whole buckets; the bucket that still fills is left out.

    >>> now = datetime(2026, 3, 5)
    >>> rate_now([StatsPoint(now, 30.0, succeeded=60), StatsPoint(now, 30.0, succeeded=30), StatsPoint(now, 30.0)])
    1.5
    >>> rate_now([])
    """
    whole = points[:-1]
    if not whole:
        return None
    last = whole[-max(1, round(60 / whole[-1].seconds)) :]
    runs = sum(point.succeeded + point.retried + point.dead + point.lost for point in last)
    return runs / sum(point.seconds for point in last)


def run_time_chart(points: Sequence[StatsPoint], now: datetime, window: timedelta) -> ChartData:
    """How long runs take: the median and the slow ones."""
    return ChartData(
        times=tuple(point.at for point in points),
        bucket=timedelta(seconds=points[0].seconds if points else 5.0),
        now=now,
        window=window,
        lines=(
            ChartSeries("p95", Token.SCHEDULED, tuple(point.p95 for point in points)),
            ChartSeries("p50", Token.RUNNING, tuple(point.p50 for point in points)),
        ),
    )


def queue_chart(queue: QueueView, now: datetime) -> ChartData:
    """What a queue finished per second over the last quarter of an hour."""
    window = timedelta(minutes=15)
    step = window / max(len(queue.trend), 1)
    end = now - timedelta(seconds=now.timestamp() % step.total_seconds())
    times = tuple(end - step * (len(queue.trend) - 1 - index) for index in range(len(queue.trend)))
    return ChartData(times, step, now, window, (ChartSeries("out", Token.OK, queue.trend),))
