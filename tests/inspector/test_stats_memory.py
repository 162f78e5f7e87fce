"""What is remembered of `job_stats`, where its times and the time of the reading do not fit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pgq_core.inspector.stats_memory import StatsMemory
from pgq_core.queries.reads import StatsRow

MINUTE = timedelta(minutes=1)


def row(at: datetime, succeeded: int) -> StatsRow:
    return StatsRow(at, "mails", succeeded, 0, 0, 0, 0, 0, [0] * 24)


def test_a_bucket_that_begins_between_the_reading_of_the_time_and_of_the_runs_counts_as_the_newest() -> None:
    now = datetime(2030, 1, 1, 12, 0, 59, 990_000, tzinfo=UTC)
    memory = StatsMemory(timedelta(minutes=10), timedelta(seconds=5))

    memory.learn(now - timedelta(minutes=10), now, [row(datetime(2030, 1, 1, 12, 0, 55, tzinfo=UTC), 2)])
    memory.learn(now, now, [row(datetime(2030, 1, 1, 12, 1, tzinfo=UTC), 3)])

    counts = memory.finished_per_bucket("mails", now=now, span=timedelta(minutes=2), step=MINUTE)
    assert counts[-1] == 5
    assert sum(counts) == 5
