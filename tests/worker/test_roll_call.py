"""What a living worker holds by the table's account and knows nothing of goes back."""

from __future__ import annotations

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import Workers

pytestmark = [pytest.mark.system, pytest.mark.slow]

CALLED_SOON = {"stale_limit": 3.0}


def test_a_job_whose_claim_token_was_changed_by_hand_goes_back(database: QueueDatabase, workers: Workers) -> None:
    """Its worker's own outcome is refused, and nobody else may touch the job of a living worker."""
    workers.start(**CALLED_SOON)
    job_id = database.put("sleep_async", {"seconds": 1})
    database.until_started(1)
    database.run("UPDATE jobs SET claim_token = claim_token + 1000000 WHERE id = %s", job_id)

    eventually(lambda: database.outcomes(job_id) == ["succeeded"], timeout=60)
    assert database.all(FAULTS) == []


def test_a_job_that_was_given_to_a_worker_by_hand_goes_back(database: QueueDatabase, workers: Workers) -> None:
    workers.start(**CALLED_SOON)
    job_id = database.put("noop", not_before="2999-01-01")
    database.run(
        "UPDATE jobs SET status = 'running', locked_by = (SELECT id FROM workers), locked_at = now(), "
        "claim_token = 1000000, not_before = now() WHERE id = %s",
        job_id,
    )

    eventually(lambda: database.outcomes(job_id) == ["succeeded"], timeout=60)
    assert database.all(FAULTS) == []
