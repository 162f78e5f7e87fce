"""A job that goes back unspent, and a server that does not want it."""

from __future__ import annotations

import time

import pytest

from pgq_core.handlers import Registry
from pgq_core.queries import Queries
from pgq_core.worker import refused
from tests.support.corridors import WORKER_ID, RunningCorridor, running_corridor
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async

REFUSE = """
CREATE SEQUENCE refusals;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM nextval('refusals');
    RAISE EXCEPTION 'not now' USING ERRCODE = 'program_limit_exceeded';
END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON jobs FOR EACH ROW
  WHEN (OLD.status = 'running' AND NEW.status <> 'running') EXECUTE FUNCTION refuse();
"""


async def hand_back(running: RunningCorridor) -> None:
    """Claims what is due, by hand, and gives it back."""
    completer = running.corridor.completer
    statement = Queries("pgq_core").claim_jobs(
        queue="other", worker_id=WORKER_ID, limit=10, job_types=["other"], lease=None
    )
    rows = await statement.fetch_all(await running.corridor.writer.connection())
    assert rows
    completer.release(rows)


@pytest.mark.slow
async def test_a_refused_hand_back_is_tried_again_with_pauses(
    database: QueueDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLSTATE class 54 is what a full queue of notifications says: asking faster does not help."""
    monkeypatch.setattr(refused, "AGAIN", 0.5)
    database.put("other", queue="other")
    async with running_corridor(database.dsn, Registry()) as running:
        database.run(REFUSE)
        await hand_back(running)
        await eventually_async(lambda: database.value("SELECT last_value FROM refusals") >= 2)  # in company, then alone
        began = time.monotonic()
        await eventually_async(lambda: database.value("SELECT last_value FROM refusals") >= 5)
        assert time.monotonic() - began > 1.0
        assert not running.corridor.completer.is_in_trouble
        database.run("DROP TRIGGER refuse ON jobs")
        await eventually_async(lambda: database.value("SELECT status FROM jobs") == "pending")
    assert database.all("SELECT status, attempts, losses FROM jobs") == [
        {"status": "pending", "attempts": 0, "losses": 0}
    ]
