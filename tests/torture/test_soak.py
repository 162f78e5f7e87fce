"""Hours under half of the load that the workers can carry: nothing may grow."""

from __future__ import annotations

import os
import time
from statistics import fmean, median
from typing import Any, NamedTuple

import psutil
import pytest

from tests.torture import form
from tests.torture.arena import Arena
from tests.torture.faults import SEVER_ALL, repeatedly
from tests.torture.fleet import Fleet
from tests.torture.loads import CAPACITY, NAP, P99_WAIT, SLOTS

pytestmark = [pytest.mark.torture, pytest.mark.system, pytest.mark.skipif(not form.IS_LONG, reason="long form only")]

MINUTE = 60.0
LARGEST_EDGE = 3600.0
"""Seconds at the beginning and at the end that are compared, at most half of the run each."""
MOST_SESSIONS = 4 * 2 + 3
"""Two of each worker (the second one comes with the first outcome), keeper, maintenance, supervisor. The producer's own
do not count: it has as many as calls of it wait at the same time."""
STATE = """
SELECT (SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database()
           AND application_name LIKE 'pgq%%'
           AND application_name <> 'pgq queue') AS sessions,
       pg_total_relation_size('jobs') AS size,
       (SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = 'jobs'::regclass) AS dead"""


class Sample(NamedTuple):
    supervisor_mb: float
    largest_child_mb: float
    descriptors: int
    threads: int
    sessions: int
    jobs_mb: float
    dead_jobs: int


def test_t26_soak(arena: Arena) -> None:
    """A worker killed and all sessions severed each minute."""
    hours = float(os.environ.get("TORTURE_HOURS", "6"))
    fleet = arena.fleet(4, SLOTS // 4).start()
    samples: list[Sample] = []

    def disturb() -> None:
        fleet.kill_one()
        arena.database.connection().execute(SEVER_ALL)

    def measure() -> None:
        samples.append(sample(arena, fleet))

    with arena.offered("nap", {"seconds": NAP}, per_second=CAPACITY / 2):
        began = time.time()
        with repeatedly(MINUTE, disturb) as faults:
            time.sleep(MINUTE / 2)  # what is looked at has had time to come back
            with repeatedly(MINUTE, measure):
                time.sleep(hours * 3600)
        ended = time.time()
    arena.until_done(300)

    fleet_early, fleet_late = edges(samples)
    edge = min(LARGEST_EDGE, (ended - began) / 2)
    first, last = wait_between(arena, began, began + edge), wait_between(arena, ended - edge, ended)
    lasted = hours * 0.8  # between the middles of the two edges
    slope = (mean(fleet_late, "supervisor_mb") - mean(fleet_early, "supervisor_mb")) / lasted
    child_slope = (mean(fleet_late, "largest_child_mb") - mean(fleet_early, "largest_child_mb")) / lasted
    grown = {name: middle(fleet_late, name) - middle(fleet_early, name) for name in ("descriptors", "threads")}
    sessions = max(sample.sessions for sample in samples)
    table = middle(fleet_late, "jobs_mb") / middle(fleet_early, "jobs_mb")
    arena.judge(
        "T26",
        f"{CAPACITY / 2:.0f} jobs/s, 4 workers, {hours:g} h",
        f"{faults.count} x SIGKILL and all sessions severed",
        rss_slope_of_the_supervisor_mb_per_hour=slope,
        rss_slope_of_the_largest_child_mb_per_hour=child_slope,
        **grown,
        sessions_at_most=sessions,
        dead_jobs=int(middle(fleet_late, "dead_jobs")),
        growth_of_the_jobs_table=table,
        p99_wait_growth=last / first,
    )
    assert slope < 1.0
    assert child_slope < 1.0
    assert grown == {"descriptors": 0, "threads": 0}
    assert sessions <= MOST_SESSIONS
    assert table <= 1.5
    assert last <= 1.2 * first


def sample(arena: Arena, fleet: Fleet) -> Sample:
    assert fleet.supervisor is not None
    supervisor = psutil.Process(fleet.supervisor.process.pid)
    state = arena.database.one(STATE)
    return Sample(
        supervisor_mb=megabytes(supervisor),
        largest_child_mb=max(megabytes(child) for child in supervisor.children(recursive=True)),
        descriptors=supervisor.num_fds(),
        threads=supervisor.num_threads(),
        sessions=state["sessions"],
        jobs_mb=state["size"] / 1024**2,
        dead_jobs=state["dead"],
    )


def megabytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1024**2


def edges(samples: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """The second tenth and the last: caches fill in the first."""
    tenth = max(len(samples) // 10, 1)
    return samples[tenth : 2 * tenth], samples[-tenth:]


def mean(samples: list[Sample], name: str) -> float:
    return fmean(getattr(sample, name) for sample in samples)


def middle(samples: list[Sample], name: str) -> float:
    return float(median(getattr(sample, name) for sample in samples))


def wait_between(arena: Arena, began: float, ended: float) -> float:
    """Seconds from being due to start, 99th percentile."""
    when: Any = f"{P99_WAIT} AND started_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)"
    return float(arena.database.value(when, began, ended))
