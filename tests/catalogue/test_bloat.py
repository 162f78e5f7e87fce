"""Bloat, scale and numbers that grow."""

from __future__ import annotations

from typing import Any

from psycopg import AsyncConnection

from pgq_core import JobQueue
from pgq_core.queries import Queries
from pgq_core.queries.upkeep import Beat
from tests.catalogue.rows import add_running, add_worker
from tests.support.queue_database import QueueDatabase


async def test_beats_rewrite_one_narrow_row_in_place_and_no_payload(
    database: QueueDatabase, queries: Queries, conn: AsyncConnection[Any]
) -> None:
    beats = []
    for number in range(4):
        add_worker(database, f"w{number}")
        add_running(database, f"w{number}", idempotency_key=str(number))
        beats.append(Beat(f"w{number}", 1, "running"))
    before = updates(database)

    for _ in range(200):
        await queries.beat_workers(beats).execute(conn)
    await conn.execute("SELECT pg_stat_force_next_flush()")
    await conn.execute("SELECT 1")

    after = updates(database)
    done, in_place = (after["workers"][n] - before["workers"][n] for n in (0, 1))
    assert done == 800
    assert in_place > 0.9 * done
    assert after["jobs"] == before["jobs"]
    assert database.value("SELECT pg_relation_size('workers') < 200000")


def updates(database: QueueDatabase) -> dict[str, tuple[int, int]]:
    database.run("SELECT pg_stat_force_next_flush()")
    rows = database.all(
        "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables "
        "WHERE relname IN ('workers', 'jobs') AND schemaname = 'pgq_core'"
    )
    return {row["relname"]: (row["n_tup_upd"], row["n_tup_hot_upd"]) for row in rows}


def test_ids_go_past_32_and_53_bits_from_the_enqueue_to_the_dead_letter(
    database: QueueDatabase, queue: JobQueue
) -> None:
    for first in (2**31 - 2, 2**53 - 2):
        database.run(f"SELECT setval(pg_get_serial_sequence('jobs', 'id'), {first})")
        ids = [queue.enqueue("job", n).id for n in range(4)]
        assert ids == [first + n for n in range(1, 5)]
        for job in queue.claim("default", 4):
            queue.fail(job, "broken", retryable=False)
        assert [row["job_id"] for row in database.all("SELECT job_id FROM job_runs ORDER BY id DESC LIMIT 4")][
            ::-1
        ] == ids
        letters = database.all("SELECT original_job_id AS id FROM dead_letter_jobs ORDER BY id DESC LIMIT 4")
        assert sorted(row["id"] for row in letters) == ids
        assert [queue.get(job_id).id for job_id in ids] == ids


def test_every_id_and_every_reference_to_one_has_64_bits(database: QueueDatabase) -> None:
    narrow = database.all(
        "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'pgq_core' "
        "AND (column_name = 'id' OR column_name LIKE '%%\\_id' OR column_name LIKE '%%token') "
        "AND data_type IN ('integer', 'smallint')"
    )

    assert narrow == []
