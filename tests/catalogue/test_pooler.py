"""Workers, maintenance and producers behind PgBouncer in transaction mode: each statement may meet another session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pgq_core import JobQueue
from tests.support.pooler import pooler_before
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import WorkerProcess

pytestmark = [pytest.mark.pooler, pytest.mark.system]


PATIENT = {"heartbeat": 1, "stale_limit": 20}


@dataclass
class Pooled:
    """Where workers go; the test itself has a direct connection."""

    dsn: str


def test_workers_behind_a_pooler_lose_nothing_and_fail_nothing(
    database: QueueDatabase, home: Path, tmp_path: Path
) -> None:
    with pooler_before(database.dsn, home, sessions=4) as pooled:
        started = [
            WorkerProcess(Pooled(pooled), tmp_path / f"{n}.log", concurrency=4, **PATIENT)  # type: ignore[arg-type]
            for n in range(2)
        ]
        try:
            with JobQueue(pooled, prepare=False, timeout=30) as queue:
                queue.enqueue_many([("noop", n) for n in range(1000)])
                transactional = queue.enqueue("insert_row", {}).id
                doomed = queue.enqueue("fail", max_attempts=1).id
                later = queue.enqueue("noop", delay=0.5).id
                eventually(lambda: database.all("SELECT FROM jobs LIMIT 1") == [], timeout=90)
                single = queue.enqueue("noop").id
            eventually(lambda: database.outcomes(single) == ["succeeded"], timeout=30)
            assert database.outcomes(transactional) == database.outcomes(later) == ["succeeded"]
            assert database.outcomes(doomed) == ["dead"]
            assert [worker.stop(timeout=30) for worker in started] == [0, 0]
        finally:
            for worker in started:
                if worker.process.poll() is None:
                    worker.kill_all()
    text = "".join(worker.text() for worker in started)
    assert "prepared statement" not in text
    assert all(worker.text().count("notifications_are_off") <= 2 for worker in started)  # keeper and runner say it once
    assert "notifications_are_off" in text
    assert database.value("SELECT count(*) FROM job_runs WHERE outcome = 'succeeded'") == 1003
    assert database.all(FAULTS) == []
    assert database.all("SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%%'") == []
    assert text.count("waits_for_database") == 0, text
