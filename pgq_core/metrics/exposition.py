"""A reading as metric families. The names are a contract: dashboards and alerts rest on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from pgq_core.domain.histogram import BOUNDS, Cells
from pgq_core.domain.job import JobStatus, Outcome
from pgq_core.domain.snapshot import Count
from pgq_core.metrics.figures import QueueFigures, Reading

_LABELS: Final = (*map(str, BOUNDS), "+Inf")
_STATES: Final = (JobStatus.PENDING, JobStatus.SCHEDULED, JobStatus.WAITING, JobStatus.RUNNING)


def families(reading: Reading) -> Iterator[Metric]:
    yield from _processed(reading)
    yield from _times(reading)
    yield from _depths(reading)
    yield from _queue_gauges(reading)
    yield from _loops(reading)
    yield GaugeMetricFamily("workers_alive", "Worker processes whose heart beats.", value=reading.workers_alive)
    yield GaugeMetricFamily(
        "jobs_without_owner", "Running jobs whose worker is gone; the reaper takes them.", value=reading.without_owner
    )
    yield GaugeMetricFamily(
        "job_oldest_running_age_seconds",
        "For how long the oldest running job has been running; 0 without one.",
        value=reading.oldest_running_age,
    )
    yield CounterMetricFamily(
        "late_writes_refused",
        "Outcomes refused, since the job was another worker's by then.",
        value=reading.late_writes,
    )


def health_families(reading: Reading | None, *, now: float, failures: int, is_up: bool) -> Iterator[Metric]:
    """How fresh all the others are. Present before the first reading, too."""
    yield GaugeMetricFamily("database_up", "Whether the last reading of the database worked.", value=int(is_up))
    yield CounterMetricFamily("metrics_refresh_failures", "Readings of the database that failed.", value=failures)
    if reading is not None:
        yield GaugeMetricFamily("metrics_age_seconds", "Age of these figures.", value=now - reading.read_at)
        yield GaugeMetricFamily("metrics_refresh_seconds", "How long reading them took.", value=reading.seconds)


def _processed(reading: Reading) -> Iterator[Metric]:
    processed = CounterMetricFamily("jobs_processed", "Closed runs by outcome.", labels=["queue", "result"])
    dead = CounterMetricFamily("dead_letter", "Jobs that became dead letters.", labels=["queue"])
    reaped = CounterMetricFamily("jobs_reaped", "Jobs taken back from workers that were gone.", labels=["queue"])
    for queue, figures in reading.queues.items():
        for outcome, count in figures.totals.by_outcome.items():
            processed.add_metric([queue, outcome.value], count)
        dead.add_metric([queue], figures.totals.by_outcome[Outcome.DEAD])
        reaped.add_metric([queue], figures.totals.by_outcome[Outcome.LOST])
    yield from (processed, dead, reaped)


def _times(reading: Reading) -> Iterator[Metric]:
    durations = HistogramMetricFamily("job_duration_seconds", "How long runs took.", labels=["queue"])
    # The statistics keep no sum of the waits, so this histogram comes without one.
    waits = Metric("job_wait_seconds", "How long runs started after they were due.", "histogram")
    for queue, figures in reading.queues.items():
        buckets = list(_cumulative(figures.totals.durations))
        durations.add_metric([queue], buckets, sum_value=figures.totals.duration_seconds)
        for bound, count in _cumulative(figures.totals.waits):
            waits.add_sample("job_wait_seconds_bucket", {"queue": queue, "le": bound}, count)
        waits.add_sample("job_wait_seconds_count", {"queue": queue}, sum(figures.totals.waits))
    yield from (durations, waits)


def _depths(reading: Reading) -> Iterator[Metric]:
    depth = GaugeMetricFamily("jobs_depth", "Live jobs by status.", labels=["queue", "status"])
    exact = GaugeMetricFamily("jobs_depth_exact", "0: jobs_depth is an estimate.", labels=["queue", "status"])
    dead = GaugeMetricFamily("dead_letters_unresolved", "Dead letters that wait for somebody.", labels=["queue"])
    dead_exact = GaugeMetricFamily(
        "dead_letters_unresolved_exact", "0: dead_letters_unresolved is an estimate.", labels=["queue"]
    )
    for queue, figures in reading.queues.items():
        for state in _STATES:
            count: Count = getattr(figures.depths, state.value)
            depth.add_metric([queue, state.value], count.value)
            exact.add_metric([queue, state.value], int(count.exact))
        dead.add_metric([queue], figures.depths.dead.value)
        dead_exact.add_metric([queue], int(figures.depths.dead.exact))
    yield from (depth, exact, dead, dead_exact)


def _loops(reading: Reading) -> Iterator[Metric]:
    """By kind of loop, never by process: the names of processes have no end."""
    age = GaugeMetricFamily(
        "loop_last_good_turn_age_seconds", "Oldest last good turn of this loop in any live process.", labels=["loop"]
    )
    stalled = GaugeMetricFamily("loops_stalled", "Processes in which this loop has stopped turning.", labels=["loop"])
    for name, figures in reading.loops.items():
        age.add_metric([name], figures.oldest)
        stalled.add_metric([name], figures.stalled)
    yield from (age, stalled)


def _queue_gauges(reading: Reading) -> Iterator[Metric]:
    gauges: dict[str, tuple[str, Callable[[QueueFigures], float]]] = {
        "job_oldest_pending_age_seconds": (
            "Age of the oldest job that could run now; 0 without one.",
            lambda figures: _age(reading, figures),
        ),
        "queue_paused": ("1: an operator holds this queue.", lambda figures: int(figures.is_paused)),
        "queue_workers": ("Live workers that serve this queue.", lambda figures: figures.workers),
        "queue_capacity": ("Jobs that its workers can run at a time.", lambda figures: figures.capacity),
    }
    for name, (help_text, value_of) in gauges.items():
        gauge = GaugeMetricFamily(name, help_text, labels=["queue"])
        for queue, figures in reading.queues.items():
            gauge.add_metric([queue], value_of(figures))
        yield gauge


def _age(reading: Reading, figures: QueueFigures) -> float:
    if figures.oldest_pending_at is None:
        return 0.0
    return max(0.0, (reading.taken_at - figures.oldest_pending_at).total_seconds())


def _cumulative(cells: Cells) -> Iterator[tuple[str, float]]:
    """
    >>> list(_cumulative((2, 3) + (0,) * 22))[:2]
    [('0.001', 2), ('0.002', 5)]
    """
    yield from zip(_LABELS, accumulate(cells), strict=True)
