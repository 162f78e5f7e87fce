"""Two parties at the same row, thousands of times."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import psycopg
import pytest

from pgq_core.database import connect
from pgq_core.job_queue import JobQueue, JobRequest
from pgq_core.maintenance import Maintenance
from pgq_core.operations import Operations
from pgq_core.queries import Queries
from pgq_core.queries.claims import FinishedJob
from pgq_core.settings import load_settings
from pgq_tui.view_model.safe_text import clean_text
from tests.conftest import SCHEMA
from tests.torture import form
from tests.torture.arena import Arena

pytestmark = pytest.mark.torture

BATCH = 50
BURY = """
WITH story AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('jobs', 'id')) AS id
      FROM generate_series(1, %s)
), run AS (
    INSERT INTO job_runs (job_id, worker_id, started_at, finished_at, success, outcome)
    SELECT id, 'w', now(), now(), false, 'dead' FROM story
)
INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
SELECT id, 'default', '{"type": "noop"}', 'e', 5 FROM story
RETURNING id
"""
CORPUS = [
    "[/]",
    "[red]x[/red] [link=http://x]y[/link] [@click=app.quit]z[/]",
    "\x1b[2J\x1b[?1049l\x1b]0;title\x07\x1b]52;c;AAAA\x07\x1b[6n",
    "\u202egnp.exe \u200b\u2066",
    "\x9b31m \x7f \x08\x08\r",
    "line one\nline two\r\n\ttab",
    "%s {x} {0} $1 \\ \\u0000 '; DROP TABLE jobs; --",
    "日本語 😀 " + "e" + "\u0301" * 1000,
    "x" * 200_000,
    '{"type": "echo", "data": null}',
    "\\[",
    "",
]


async def test_finish_and_reaper_at_the_same_rows_leave_one_outcome_each(arena: Arena) -> None:
    """Whoever comes first wins; the other changes nothing."""
    rounds = form.count(10_000) // BATCH
    settings = load_settings(dsn=arena.dsn, stale_limit=0.3, heartbeat=0.1)
    maintenance, queries, random = Maintenance(settings), Queries(SCHEMA), Random(3)
    won: Counter[str] = Counter()
    async with await connect(arena.dsn, application_name="pgq finisher") as conn:
        for _ in range(rounds):
            ids = arena.enqueue("noop", count=BATCH)
            claimed = await queries.claim_jobs(
                queue="default", worker_id="dead", limit=BATCH, job_types=None, lease=None
            ).fetch_all(conn)
            assert sorted(row.id for row in claimed) == sorted(ids)
            await conn.execute("UPDATE jobs SET locked_at = now() - interval '1 minute' WHERE locked_by = 'dead'")
            writes = [
                FinishedJob(row.id, row.claim_token, started=None, finished=None, outcome="succeeded")
                for row in claimed
            ]
            random.shuffle(writes)
            finished, _ = await asyncio.gather(finish(conn, queries, writes, random), reap(maintenance, random))
            won["finish"] += len(finished)
            rest = await queries.claim_jobs(
                queue="default", worker_id="second", limit=BATCH, job_types=None, lease=None
            ).fetch_all(conn)
            won["reaper"] += len(rest)
            won["refused"] += BATCH - len(finished)
            assert len(finished) + len(rest) == BATCH
            assert not {row.id for row in rest} & set(finished)
            seconds = [
                FinishedJob(row.id, row.claim_token, started=None, finished=None, outcome="succeeded") for row in rest
            ]
            await queries.finish_jobs(seconds, worker_id="second", slot=0).execute(conn)
    await maintenance.close()

    lost = arena.database.value("SELECT count(*) FROM job_runs WHERE outcome = 'lost'")
    arena.accepted.clear()  # nothing really ran: there is no ledger to compare with
    arena.judge(
        "Reaper against finish",
        f"{rounds * BATCH} jobs",
        f"{rounds} x both at once",
        finish_won=won["finish"],
        late_writes_tried=won["reaper"],
        late_writes_refused=won["refused"],
    )
    assert won["refused"] == won["reaper"]
    assert lost == won["reaper"]
    assert min(won["finish"], won["reaper"]) > 0, "one of the two always won: that was no race"


async def finish(
    conn: psycopg.AsyncConnection[Any], queries: Queries, writes: list[FinishedJob], random: Random
) -> list[int]:
    """In pieces, so that the reaper comes in between."""
    ours: list[int] = []
    await asyncio.sleep(random.uniform(0, 0.004))
    for first in range(0, len(writes), 5):
        ours += await queries.finish_jobs(writes[first : first + 5], worker_id="dead", slot=0).fetch_all(conn)
    return ours


async def reap(maintenance: Maintenance, random: Random) -> None:
    """Until it has taken all that it may; what was locked at the first look is looked at again."""
    await asyncio.sleep(random.uniform(0, 0.01))
    for _ in range(3):
        await maintenance.reaper.run_once()


async def test_replay_pressed_twice_from_two_places_makes_one_follow_up_each(arena: Arena) -> None:
    count, rounds = form.count(1000, 200), form.count(20, 3)
    queries = Queries(SCHEMA)
    pressed = accepted = 0
    for _ in range(rounds):
        letters = bury(arena, count)
        presses = [press(arena.dsn, queries, who, letters, Random(place)) for place, who in enumerate(["a", "a", "b"])]
        results = await asyncio.gather(*presses)
        pressed += count * len(presses)
        accepted += sum(results)
        assert sum(results) == count
    doubled = arena.database.all(
        "SELECT replayed_from FROM jobs WHERE replayed_from IS NOT NULL GROUP BY 1 HAVING count(*) > 1"
    )
    arena.accepted.clear()
    arena.judge("Replay storm", f"{count * rounds} dead letters", f"{pressed} presses", accepted=accepted)
    assert doubled == []


def bury(arena: Arena, count: int) -> list[int]:
    return [row["id"] for row in arena.database.all(BURY, count)]


async def press(dsn: str, queries: Queries, operator: str, letters: list[int], random: Random) -> int:
    """One operator's key; answers how many were replayed by it."""
    chosen = random.sample(letters, len(letters))
    operations = Operations(queries, operator=operator)
    async with await connect(dsn, application_name=f"pgq console {operator}") as conn:
        result = await operations.replay(conn, chosen)
    return result.done


def test_keyed_batches_in_clashing_order_make_one_job_per_key(arena: Arena) -> None:
    keys, producers = [f"key-{number}" for number in range(form.count(2000, 400))], 8
    start, answers = threading.Barrier(producers), []

    def produce(place: int) -> list[int]:
        shuffled = Random(place).sample(keys, len(keys))
        with JobQueue(arena.dsn) as queue:
            start.wait(30)
            ids = {}
            for first in range(0, len(shuffled), 100):
                part = shuffled[first : first + 100]
                requests = [JobRequest("noop", {"key": key}, idempotency_key=key) for key in part]
                ids |= dict(zip(part, (job.id for job in queue.enqueue_many(requests)), strict=True))
        return [ids[key] for key in keys]

    with ThreadPoolExecutor(producers) as threads:
        answers = list(threads.map(produce, range(producers)))
    arena.accepted += answers[0]
    arena.fleet(2, 4).start()
    arena.until_done(120)

    arena.judge("Keyed batches", f"{len(keys)} keys", f"{producers} producers in clashing order")
    assert all(answer == answers[0] for answer in answers)
    assert len(set(answers[0])) == len(keys)


def test_hostile_text_comes_through_end_to_end(arena: Arena) -> None:
    good = dict(zip(arena.enqueue_each(JobRequest("echo", {"text": text}) for text in CORPUS), CORPUS, strict=True))
    bad = dict(
        zip(
            arena.enqueue_each(JobRequest("complain", {"text": text}, max_attempts=1) for text in CORPUS),
            CORPUS,
            strict=True,
        )
    )
    fleet = arena.fleet(2, 4).start()
    arena.until_done(120)

    results = {row["job_id"]: row["result"] for row in arena.database.all("SELECT job_id, result FROM job_runs")}
    letters = {row["original_job_id"]: row for row in arena.database.all("SELECT * FROM dead_letter_jobs")}
    arena.judge(
        "Hostile text", f"{len(good) + len(bad)} jobs", f"{len(CORPUS)} texts in payload, result, error and log"
    )
    for job_id, text in good.items():
        assert (results[job_id] or {}).get("text") == text or len(text) > 100_000
    assert sorted(letters) == sorted(bad)
    for job_id, text in bad.items():
        assert letters[job_id]["payload"]["data"]["text"] == text
        shown = clean_text(letters[job_id]["last_error"])
        assert not any(ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 or sign == "\u202e" for sign in shown)
    assert fleet.crashed_by_itself() == []
