"""A queue that does not write every success down, while its workers die."""

from __future__ import annotations

import signal

import pytest

from tests.torture import form
from tests.torture.arena import Arena
from tests.torture.faults import repeatedly

pytestmark = [pytest.mark.torture, pytest.mark.system]

STORIES_WITHOUT_AN_END = """
SELECT job_id
  FROM job_runs r
 WHERE NOT EXISTS (SELECT FROM job_runs e WHERE e.job_id = r.job_id AND e.outcome = 'succeeded')
"""


def test_statistics_stay_exact_where_successes_leave_no_run(arena: Arena) -> None:
    jobs = form.count(6000, 1500)
    arena.database.run("INSERT INTO queues (name, audit) VALUES ('default', 'failures')")
    fleet = arena.fleet(4, 2).start()
    arena.enqueue("nap", {"seconds": 0.1}, count=jobs, max_attempts=50)

    with repeatedly(2.0, lambda: fleet.signalled(signal.SIGKILL) is not None) as kills:
        arena.until_done(300)

    assert kills.count > 0
    assert arena.violations() == []
    assert arena.database.value("SELECT sum(succeeded)::int FROM job_stats") == jobs
    assert arena.database.all(STORIES_WITHOUT_AN_END) == []
    assert arena.database.value("SELECT count(*) FROM job_runs") < jobs
