"""Jobs of workers that are gone come back; those of the living stay where they are."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from pgq_core.database import IDLE_LIMIT, connect, connect_sync, is_transient
from pgq_core.domain.decision import MAX_LOSSES
from pgq_core.maintenance import Maintenance
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually_async

TOKEN = "claim_token = nextval('claim_token_seq')"


def running_job(
    database: QueueDatabase, worker: str, *, claimed: str = "0", lease: str = "NULL", **columns: object
) -> int:
    job_id = database.put("type", **columns)
    database.run(
        f"UPDATE jobs SET status = 'running', locked_by = %s, locked_at = now() - interval '{claimed} s', {TOKEN}, "
        f"lease_until = {lease} WHERE id = %s",
        worker,
        job_id,
    )
    return job_id


def worker_row(database: QueueDatabase, worker: str, *, beat_ago: float, stopped: bool = False) -> None:
    database.run(
        "INSERT INTO workers (id, host, queues, concurrency, state, heartbeat_at, stopped_at) "
        "VALUES (%s, 'host', '{default}', 1, %s, now() - make_interval(secs => %s), CASE WHEN %s THEN now() END)",
        worker,
        "stopped" if stopped else "running",
        beat_ago,
        stopped,
    )


async def test_jobs_of_a_silent_worker_come_back_and_the_worker_is_marked_lost(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    worker_row(database, "silent", beat_ago=10)
    worker_row(database, "beating", beat_ago=0.5)
    lost = running_job(database, "silent", claimed="60", max_attempts=1)
    kept = running_job(database, "beating", claimed="3600")

    await maintenance.reaper.run_once()

    row = database.job(lost)
    assert row is not None
    assert (row["status"], row["attempts"], row["losses"], row["locked_by"]) == ("pending", 0, 1, None)
    (run,) = database.runs(lost)
    assert (run["outcome"], run["attempt"], run["worker_id"], run["success"]) == ("lost", 1, "silent", False)
    assert database.value("SELECT state FROM workers WHERE id = 'silent'") == "lost"
    assert database.value("SELECT state FROM workers WHERE id = 'beating'") == "running"
    assert (database.job(kept) or {})["status"] == "running"
    assert database.all(FAULTS) == []


async def test_jobs_of_an_ended_worker_come_back_at_once(database: QueueDatabase, maintenance: Maintenance) -> None:
    worker_row(database, "ended", beat_ago=0, stopped=True)
    job_id = running_job(database, "ended")

    await maintenance.reaper.run_once()

    assert database.outcomes(job_id) == ["lost"]


async def test_worker_without_a_row_counts_as_dead_only_when_its_claim_is_old(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    old = running_job(database, "nobody", claimed="10")
    fresh = running_job(database, "nobody", claimed="0")

    await maintenance.reaper.run_once()

    assert database.outcomes(old) == ["lost"]
    assert (database.job(fresh) or {})["status"] == "running"


async def test_lease_alone_decides_about_claims_that_carry_one(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    past = running_job(database, "script", claimed="10", lease="now() - interval '1 s'")
    ahead = running_job(database, "script", claimed="3600", lease="now() + interval '1 min'")

    await maintenance.reaper.run_once()

    assert database.outcomes(past) == ["lost"]
    assert (database.job(ahead) or {})["status"] == "running"


async def test_job_lost_too_often_becomes_a_dead_letter(database: QueueDatabase, maintenance: Maintenance) -> None:
    job_id = running_job(database, "nobody", claimed="10", losses=MAX_LOSSES - 1)

    await maintenance.reaper.run_once()

    letter = database.letter(job_id)
    assert letter is not None
    assert (letter["reason"], letter["attempts"]) == ("crash_loop", 0)


async def test_lost_job_that_was_asked_to_stop_ends_as_cancelled(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    job_id = running_job(database, "nobody", claimed="10")
    database.run("SELECT cancel(%s)", job_id)

    await maintenance.reaper.run_once()

    assert database.job(job_id) is None
    assert database.outcomes(job_id) == ["cancelled"]


async def test_reaper_leaves_a_row_that_somebody_finishes_right_now(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    job_id = running_job(database, "nobody", claimed="10")
    with psycopg.connect(database.dsn) as finisher:
        finisher.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (job_id,))
        await asyncio.wait_for(maintenance.reaper.run_once(), 60)
        finisher.execute("DELETE FROM jobs WHERE id = %s", (job_id,))
        finisher.commit()

    await maintenance.reaper.run_once()

    assert database.runs(job_id) == []


async def test_who_is_suspended_amid_a_transaction_does_not_hold_the_jobs_of_the_dead_for_ever(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    """A reaper that was stopped between two statements: its successor passes by the rows that it has locked."""
    job_id = running_job(database, "nobody", claimed="10")
    with connect_sync(database.dsn, application_name="suspended", idle_limit=0.2) as suspended:
        suspended.execute("BEGIN")
        suspended.execute("SELECT FROM jobs WHERE id = %s FOR UPDATE", (job_id,))

        await eventually_async(lambda: _reaped(database, maintenance, job_id), timeout=60)

        with pytest.raises(psycopg.Error) as ended:
            suspended.execute("COMMIT")
    assert is_transient(ended.value), "who wakes up connects anew"


async def test_a_job_that_cannot_be_given_back_stands_in_nobodys_way(
    database: QueueDatabase, maintenance: Maintenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for its batch either, where the first rows of a batch are all of that kind."""
    monkeypatch.setattr("pgq_core.maintenance.reaper.BATCH", 2)
    bad = [running_job(database, "nobody", claimed="20") for _ in range(2)]
    good = [running_job(database, "nobody", claimed="10") for _ in range(3)]
    database.run("CREATE TABLE kept (job_id bigint REFERENCES jobs)")
    database.run("UPDATE jobs SET cancel_requested = true")  # each ends, and its row goes
    database.run("INSERT INTO kept SELECT unnest(%s::bigint[])", bad)

    for _ in range(3):
        await maintenance.reaper.run_once()
    database.run("DROP TABLE kept")

    assert [database.outcomes(job_id) for job_id in good] == [["cancelled"]] * 3
    assert [(database.job(job_id) or {})["status"] for job_id in bad] == ["running"] * 2


@pytest.mark.parametrize("timing", ["IMMEDIATE", "DEFERRED"])
async def test_a_foreign_key_on_one_job_keeps_no_other_whenever_it_is_checked(
    database: QueueDatabase, maintenance: Maintenance, timing: str
) -> None:
    """One that is checked at the end of the transaction would undo all of it, again and again."""
    watched = running_job(database, "nobody", claimed="10", losses=MAX_LOSSES - 1)
    others = [running_job(database, "nobody", claimed="10", losses=losses) for losses in (0, MAX_LOSSES - 1)]
    database.run(
        f"CREATE TABLE public.watched (job_id bigint REFERENCES jobs DEFERRABLE INITIALLY {timing})",
    )
    database.run("INSERT INTO public.watched VALUES (%s)", watched)

    await maintenance.reaper.run_once()

    kept = (database.job(watched) or {})["status"]
    database.run("DROP TABLE public.watched")
    assert (kept, database.outcomes(others[0])) == ("running", ["lost"])
    assert database.letter(others[1]) is not None


async def test_no_death_is_forgiven_where_nobody_can_write_dead_letters(
    database: QueueDatabase, maintenance: Maintenance
) -> None:
    job_id = running_job(database, "nobody", claimed="10", losses=MAX_LOSSES - 1)
    with psycopg.connect(database.dsn) as stranger:
        stranger.execute("LOCK TABLE dead_letter_jobs")
        await maintenance.reaper.run_once()

    job = database.job(job_id) or {}
    assert (job["status"], job["losses"], job["attempts"], job["suspect"]) == ("pending", MAX_LOSSES, 0, True)
    assert database.outcomes(job_id) == ["lost"]


@pytest.mark.parametrize("lacks", ["claim_token", "locked_at"])
async def test_running_rows_that_were_made_by_hand_come_back(
    database: QueueDatabase, maintenance: Maintenance, lacks: str
) -> None:
    job_id = running_job(database, "nobody", claimed="10")
    database.run(f"UPDATE jobs SET {lacks} = NULL")

    await maintenance.reaper.run_once()
    database.run("UPDATE jobs SET locked_at = now() - interval '10 s'")
    await maintenance.reaper.run_once()

    assert database.outcomes(job_id) == ["lost"]
    assert database.all(FAULTS) == []


async def _reaped(database: QueueDatabase, maintenance: Maintenance, job_id: int) -> bool:
    await maintenance.reaper.run_once()
    return (database.job(job_id) or {})["status"] == "pending"


async def test_every_session_of_ours_may_be_silent_in_a_transaction_for_so_long_and_no_longer(dsn: str) -> None:
    look = "SELECT extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)"
    async with await connect(dsn, application_name="ours") as conn, conn.cursor() as cursor:
        (own,) = await (await cursor.execute(look)).fetchone() or ()
    with connect_sync(dsn, application_name="others'", idle_limit=None) as plain:
        (others,) = plain.execute(look).fetchone() or ()

    assert (own, others) == (IDLE_LIMIT, 0)


async def test_more_jobs_than_a_batch_come_back(database: QueueDatabase, maintenance: Maintenance) -> None:
    database.run('INSERT INTO jobs (payload) SELECT \'{"type": "t"}\' FROM generate_series(1, 1200)')
    database.run(
        "UPDATE jobs SET status = 'running', locked_by = 'nobody', claim_token = 1, "
        "locked_at = now() - interval '1 min'"
    )
    stop = asyncio.Event()
    task = asyncio.create_task(maintenance.reaper.run(stop))

    await eventually_async(lambda: not database.value("SELECT count(*) FROM jobs WHERE status = 'running'"))

    stop.set()
    await task
    assert database.value("SELECT count(*) FROM job_runs WHERE outcome = 'lost'") == 1200


async def test_a_dear_look_rests_but_a_lost_worker_is_looked_after_at_once(
    database: QueueDatabase, maintenance: Maintenance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pgq_core.maintenance.duty.rest_after", lambda _: 3600.0)
    await maintenance.reaper.run_once()
    past = running_job(database, "script", claimed="10", lease="now() - interval '1 s'")

    await maintenance.reaper.run_once()
    assert (database.job(past) or {})["status"] == "running"

    worker_row(database, "silent", beat_ago=10)
    lost = running_job(database, "silent", claimed="60")
    await maintenance.reaper.run_once()
    assert database.outcomes(lost) == ["lost"]
    assert database.outcomes(past) == ["lost"]
