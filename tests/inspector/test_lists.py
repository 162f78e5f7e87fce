from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.domain.filters import NO_FINGERPRINT, DeadLetterFilters, JobFilters, Resolution, RunFilters
from pgq_core.domain.snapshot import Count, JobView
from pgq_core.domain.tail import RunTail
from pgq_core.inspector import Inspector
from pgq_core.operations import Operations
from tests.support.zoo import add_dead_letter, add_job, add_run, add_running_job, add_worker, value_of

Conn = AsyncConnection[Any]

HOSTILE = "[/x][red]%_\\ '\"\u202e\x1b[2J"


async def test_runs_come_newest_first_and_page_by_page(conn: Conn, inspector: Inspector) -> None:
    ids = [await add_run(conn, job_id) for job_id in range(1, 6)]

    first = await inspector.latest_runs(conn, 2)
    second = await inspector.latest_runs(conn, 2, before=first[-1].id)

    assert [run.id for run in first + second] == [ids[4], ids[3], ids[2], ids[1]]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (RunFilters(queue="b"), {2}),
        (RunFilters(job_type="bill"), {3}),
        (RunFilters(outcomes=("retried", "dead")), {2, 4}),
        (RunFilters(worker_id="w-9"), {4}),
        (RunFilters(text="TIMED out"), {4}),
        (RunFilters(text="[RED]%_\\"), {2}),
        (RunFilters(text="3"), {3}),
        (RunFilters(job_id=1), {1}),
        (RunFilters(text="%"), {2}),
        (RunFilters(queue="nobody"), set()),
    ],
)
async def test_runs_are_filtered_by_the_server_and_text_is_no_pattern(
    conn: Conn, inspector: Inspector, filters: RunFilters, expected: set[int]
) -> None:
    await add_run(conn, 1)
    await add_run(conn, 2, queue="b", outcome="retried", error=HOSTILE)
    await add_run(conn, 3, job_type="bill")
    await add_run(conn, 4, outcome="dead", worker_id="w-9", error="timed out")

    latest = await inspector.latest_runs(conn, 10, filters)
    after = await inspector.runs_after(conn, 0, 10, filters)

    assert {run.job_id for run in latest} == expected
    assert {run.job_id for run in after} == expected


async def test_tail_shows_each_run_once_the_late_commits_too(dsn: str, conn: Conn, inspector: Inspector) -> None:
    tail = RunTail()
    late = await connect(dsn, application_name="late")
    async with late.transaction():
        late_id = await add_run(late, 1)
        early_id = await add_run(conn, 2)
        first = tail.fresh(await inspector.runs_after(conn, tail.last_id, 10, seen=tail.seen))
    await late.close()
    second = tail.fresh(await inspector.runs_after(conn, tail.last_id, 10, seen=tail.seen))
    third = tail.fresh(await inspector.runs_after(conn, tail.last_id, 10, seen=tail.seen))

    assert late_id < early_id
    assert [run.id for run in first] == [early_id]
    assert [run.id for run in second] == [late_id]
    assert third == ()


async def test_run_detail_has_traceback_and_a_result_that_is_cut(conn: Conn, inspector: Inspector) -> None:
    run_id = await add_run(conn)
    await conn.execute(
        "UPDATE job_runs SET traceback = 'tb', result = to_jsonb(repeat('x', 100000)) WHERE id = %s", (run_id,)
    )

    detail = await inspector.run(conn, run_id)

    assert detail is not None
    assert (detail.traceback, detail.result_size) == ("tb", 100002)
    assert len(detail.result_text or "") == 64 * 1024
    assert await inspector.run(conn, 987654) is None


async def test_running_jobs_tell_who_runs_them_and_who_is_gone(conn: Conn, inspector: Inspector) -> None:
    await add_worker(conn, "alive")
    await add_worker(conn, "stale", beat_age=timedelta(minutes=5))
    jobs = {worker: await add_running_job(conn, worker, attempts=1) for worker in ("alive", "stale", "unknown")}
    leased = await add_running_job(conn, "own-loop")
    await conn.execute("UPDATE jobs SET lease_until = now() + interval '1 minute' WHERE id = %s", (leased,))

    running = {job.job_id: job for job in await inspector.running_jobs(conn)}

    assert running[jobs["alive"]].attempt == 2
    assert {job.worker_id: job.is_orphan for job in running.values()} == {
        "alive": False,
        "stale": True,
        "unknown": True,
        "own-loop": False,
    }
    assert [job.job_id for job in await inspector.running_jobs(conn, worker_id="alive")] == [jobs["alive"]]


async def all_pages(conn: Conn, inspector: Inspector, filters: JobFilters, limit: int) -> list[JobView]:
    jobs: list[JobView] = []
    page = await inspector.jobs(conn, filters, limit=limit)
    jobs.extend(page.jobs)
    while page.next is not None:
        page = await inspector.jobs(conn, filters, limit=limit, after=page.next)
        jobs.extend(page.jobs)
    return jobs


async def test_pending_jobs_are_listed_in_the_order_of_claims_over_all_pages(conn: Conn, inspector: Inspector) -> None:
    low = await add_job(conn, priority=-1)
    first, second = await add_job(conn), await add_job(conn)
    high = await add_job(conn, priority=5)
    other = await add_job(conn, queue="a")

    jobs = await all_pages(conn, inspector, JobFilters(status="pending"), limit=2)

    assert [job.id for job in jobs] == [other, high, first, second, low]


async def test_scheduled_and_waiting_jobs_page_in_their_order(conn: Conn, inspector: Inspector) -> None:
    later, sooner = await add_job(conn, due_in=timedelta(hours=2)), await add_job(conn, due_in=timedelta(hours=1))
    b, a = await add_job(conn, waiting_for="b"), await add_job(conn, waiting_for="a")

    scheduled = await all_pages(conn, inspector, JobFilters(status="scheduled"), limit=1)
    waiting = await all_pages(conn, inspector, JobFilters(status="waiting"), limit=1)

    assert [job.id for job in scheduled] == [sooner, later]
    assert [job.id for job in waiting] == [a, b]


async def test_jobs_in_every_state_are_listed_newest_first(conn: Conn, inspector: Inspector) -> None:
    ids = [await add_job(conn), await add_running_job(conn), await add_job(conn, "bill", queue="b")]

    everything = await all_pages(conn, inspector, JobFilters(), limit=2)
    running = await all_pages(conn, inspector, JobFilters(status="running"), limit=2)
    bills = await all_pages(conn, inspector, JobFilters(job_type="bill"), limit=2)

    assert [job.id for job in everything] == ids[::-1]
    assert [job.id for job in running] == [ids[1]]
    assert [job.id for job in bills] == [ids[2]]


async def test_job_whose_type_no_worker_knows_is_marked(conn: Conn, inspector: Inspector) -> None:
    await add_worker(conn, job_types=("send_email",))
    known, unknown = await add_job(conn), await add_job(conn, "bill")
    unserved = await add_job(conn, "bill", queue="nobody")

    page = await inspector.jobs(conn, JobFilters(status="pending"))

    assert {job.id: job.no_worker_knows_type for job in page.jobs} == {known: False, unknown: True, unserved: False}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (DeadLetterFilters(), {0, 1, 2}),
        (DeadLetterFilters(queue="b"), {1}),
        (DeadLetterFilters(job_type="bill"), {1}),
        (DeadLetterFilters(reason="timeout"), {2}),
        (DeadLetterFilters(fingerprint="f1"), {0}),
        (DeadLetterFilters(fingerprint=NO_FINGERPRINT), {2}),
        (DeadLetterFilters(text="[RED]%_\\"), {1}),
        (DeadLetterFilters(text="valueERROR"), {0}),
        (DeadLetterFilters(resolution=Resolution.DISCARDED), {3}),
        (DeadLetterFilters(resolution=Resolution.ANY), {0, 1, 2, 3}),
        (DeadLetterFilters(resolution=Resolution.REPLAYED), set()),
    ],
)
async def test_dead_letters_are_filtered_by_the_server(
    conn: Conn, inspector: Inspector, operations: Operations, filters: DeadLetterFilters, expected: set[int]
) -> None:
    letters = [
        await add_dead_letter(conn, fingerprint="f1"),
        await add_dead_letter(conn, "bill", queue="b", error=HOSTILE, fingerprint="f2"),
        await add_dead_letter(conn, error="late", fingerprint=None, reason="timeout"),
        await add_dead_letter(conn, fingerprint="f2"),
    ]
    await operations.discard(conn, [letters[3]])

    listed = await inspector.dead_letters(conn, filters)

    assert {letters.index(letter.id) for letter in listed} == expected
    assert await inspector.count_dead_letters(conn, filters) == Count(len(expected))


async def test_dead_letters_page_by_id_and_by_time(conn: Conn, inspector: Inspector) -> None:
    ids = [await add_dead_letter(conn, age=timedelta(hours=hours)) for hours in (3, 2, 1)]
    edge = await value_of(conn, "SELECT now() - interval '90 minutes'")

    first = await inspector.dead_letters(conn, limit=2)
    second = await inspector.dead_letters(conn, limit=2, before=first[-1].id)

    assert [letter.id for letter in first + second] == ids[::-1]
    assert [x.id for x in await inspector.dead_letters(conn, DeadLetterFilters(died_after=edge))] == [ids[2]]
    assert [x.id for x in await inspector.dead_letters(conn, DeadLetterFilters(died_before=edge))] == [ids[1], ids[0]]


async def test_long_errors_are_cut_in_lists_and_whole_in_the_detail(conn: Conn, inspector: Inspector) -> None:
    letter = await add_dead_letter(conn, error="E" * 5000, data={"text": "ä" * 100_000})

    (listed,) = await inspector.dead_letters(conn)
    detail = await inspector.dead_letter(conn, letter)

    assert len(listed.last_error) == 500
    assert detail is not None
    assert len(detail.letter.last_error) == 5000
    assert len(detail.payload_text) == 64 * 1024
    assert detail.payload_size > 200_000


async def test_groups_count_letters_of_one_kind_and_show_the_newest(conn: Conn, inspector: Inspector) -> None:
    for n in range(3):
        await add_dead_letter(conn, fingerprint="f1", error=f"ValueError: {n}")
    await add_dead_letter(conn, "bill", fingerprint="f2", error="KeyError: x")
    await add_dead_letter(conn, fingerprint=None, error="old")

    groups = await inspector.dead_groups(conn)

    assert (groups[0].fingerprint, groups[0].count, groups[0].sample_error) == ("f1", Count(3), "ValueError: 2")
    assert {(g.fingerprint, g.job_type, g.count) for g in groups[1:]} == {
        ("f2", "bill", Count(1)),
        (None, "send_email", Count(1)),
    }
    assert groups[0].first_at <= groups[0].last_at


async def test_letters_of_no_kind_at_all_make_no_group(conn: Conn, inspector: Inspector) -> None:
    assert await inspector.dead_groups(conn) == ()
    await add_dead_letter(conn, fingerprint=None)
    assert [group.fingerprint for group in await inspector.dead_groups(conn)] == [None]


async def test_follow_up_tells_where_the_replayed_job_stands(
    conn: Conn, inspector: Inspector, operations: Operations
) -> None:
    letter = await add_dead_letter(conn)
    replayed = await operations.replay(conn, [letter])
    job_id = replayed.items[0].job_id or 0

    async def follow_up() -> str | None:
        detail = await inspector.dead_letter(conn, letter)
        return detail.follow_up if detail else None

    assert await follow_up() == "pending"
    await conn.execute("DELETE FROM jobs WHERE id = %s", (job_id,))
    await add_run(conn, job_id, outcome="succeeded")
    assert await follow_up() == "succeeded"


async def test_record_of_a_job_is_known_in_every_state(
    conn: Conn, inspector: Inspector, operations: Operations
) -> None:
    pending, running = await add_job(conn, data={"a": 2**60}), await add_running_job(conn)
    letter = await add_dead_letter(conn)
    dead = await value_of(conn, "SELECT original_job_id FROM dead_letter_jobs WHERE id = %s", letter)
    done = await add_job(conn)
    await add_run(conn, done, outcome="retried", error="boom")
    await add_run(conn, done, attempt=2)
    await conn.execute("DELETE FROM jobs WHERE id = %s", (done,))
    replay = (await operations.replay(conn, [letter])).items[0].job_id or 0

    states = {}
    for job_id in (pending, running, dead, done, replay):
        record = await inspector.job_record(conn, job_id)
        assert record is not None
        states[job_id] = record.state

    assert states == {pending: "pending", running: "running", dead: "dead", done: "succeeded", replay: "pending"}
    record = await inspector.job_record(conn, pending)
    assert record is not None
    assert record.live is not None
    assert str(2**60) in record.live.payload_text
    record = await inspector.job_record(conn, replay)
    assert record is not None
    assert record.replayed_from == letter
    assert await inspector.job_record(conn, 987654) is None


async def test_last_words_of_a_worker_are_shown(conn: Conn, inspector: Inspector) -> None:
    await add_worker(conn, "w-1")

    assert await inspector.worker_output(conn, "w-1") == "last words"
    assert await inspector.worker_output(conn, "w-2") is None


async def test_operations_are_listed_with_who_and_what(
    conn: Conn, inspector: Inspector, operations: Operations
) -> None:
    await operations.pause(conn, "default", "why")
    result = await operations.resume(conn, "default")

    listed = await inspector.operations(conn, limit=1)
    detail = await inspector.operation(conn, result.operation_id or 0)

    assert [(o.action, o.target, o.operator, o.can_be_undone) for o in listed] == [
        ("resume", "queue default", "ops@test", True)
    ]
    assert detail is not None
    assert detail.operation == listed[0]
    assert await inspector.operation(conn, 987654) is None
