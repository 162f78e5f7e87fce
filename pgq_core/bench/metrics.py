"""The figures a benchmark can report: their names in JSON, their words and units on a screen, in reading order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    label: str
    unit: str = ""
    scale: float = 1.0
    """From the stored unit (seconds, bytes) to the shown one."""


_MS = 1000.0


def _percentiles(prefix: str, label: str) -> tuple[Metric, ...]:
    return tuple(Metric(f"{prefix}_p{share}", f"{label}, p{share}", "ms", _MS) for share in (50, 95, 99))


METRICS: Final = (
    Metric("rate", "throughput", "jobs/s"),
    Metric("capacity", "capacity", "jobs/s"),
    Metric("offered", "offered", "jobs/s"),
    Metric("rate_last", "throughput in the last fifth", "jobs/s"),
    Metric("ratio", "of the same run without"),
    *_percentiles("start", "enqueue to start"),
    *_percentiles("finish", "enqueue to finish"),
    *_percentiles("commit_start", "commit to start"),
    *_percentiles("call_start", "call to start"),
    *_percentiles("late", "start after its due time"),
    *_percentiles("call", "enqueue as its caller sees it"),
    Metric("call_ratio", "its p99, of that on an idle queue"),
    Metric("start_p99_first", "p99 of enqueue to start, first third", "ms", _MS),
    Metric("start_p99_last", "p99 of enqueue to start, last third", "ms", _MS),
    Metric("backlog_growth", "growth of the backlog", "jobs"),
    Metric("producer_lag_p99", "producer behind its schedule, p99", "ms", _MS),
    *_percentiles("tick", "one tick of the console"),
    Metric("console_server_share", "console's share of the server's CPU", "%", 100.0),
    Metric("console_core_share", "console's share of one core, in the server", "%", 100.0),
    Metric("connections", "connections"),
    Metric("busiest_share", "share of the busiest worker", "%", 100.0),
    Metric("wal_bytes", "WAL per job", "B"),
    Metric("cpu_runners", "CPU per job: runners", "µs"),
    Metric("cpu_keepers", "CPU per job: keepers", "µs"),
    Metric("cpu_server", "CPU per job: server", "µs"),
    Metric("cpu_machine", "CPU per job: whole machine", "µs"),
    Metric("idle_runner", "CPU of an idle runner", "% of a core", 100.0),
    Metric("idle_keeper", "CPU of an idle keeper", "% of a core", 100.0),
    Metric("rss_runner", "memory of a runner", "MB"),
    Metric("rss_keeper", "memory of a keeper", "MB"),
    Metric("commits", "commits per job"),
    Metric("rows_inserted", "rows inserted per job"),
    Metric("rows_updated", "rows updated per job"),
    Metric("rows_deleted", "rows deleted per job"),
    Metric("dead_tuples", "dead row versions left per job"),
    Metric("samples", "samples"),
)
BY_NAME: Final = {metric.name: metric for metric in METRICS}
