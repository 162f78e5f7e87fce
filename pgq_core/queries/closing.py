"""Writing what became of the jobs of the dead, of each as much as the database takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg import AsyncConnection

from pgq_core.queries import Queries
from pgq_core.queries.claims import BuriedJob, RescheduledJob
from pgq_core.queries.piecemeal import write_what_can_be

Closing = RescheduledJob | BuriedJob


async def close_runs(
    conn: AsyncConnection[Any], queries: Queries, writes: Sequence[Closing], *, slot: int, has_partitions: bool
) -> tuple[list[Closing], list[tuple[Closing, psycopg.Error]]]:
    """Inside a transaction. Answers what was written, and what was refused, each with the reason.

    Where somebody has locked the dead letters, nothing waits for him: who should be buried goes back with its attempts
    spent, and is buried later without having run again.
    """

    async def reschedule(jobs: Sequence[RescheduledJob]) -> None:
        await queries.reschedule_jobs(jobs, slot=slot).execute(conn)

    async def bury(letters: Sequence[BuriedJob]) -> None:
        await queries.bury_jobs(letters, slot=slot).execute(conn)

    jobs = [write for write in writes if isinstance(write, RescheduledJob)]
    letters = [write for write in writes if isinstance(write, BuriedJob)]
    unburied: list[tuple[BuriedJob, psycopg.Error]] = []
    try:
        unburied = await write_what_can_be(conn, letters, bury, has_partitions=has_partitions)
    except psycopg.errors.LockNotAvailable:
        jobs += [letter.without_dead_letter() for letter in letters]
        letters = []
    kept = await write_what_can_be(conn, jobs, reschedule, has_partitions=has_partitions)
    refused: list[tuple[Closing, psycopg.Error]] = [*unburied, *kept]
    all_writes: list[Closing] = [*jobs, *letters]
    ids = {write.id for write, _ in refused}
    return [write for write in all_writes if write.id not in ids], refused
