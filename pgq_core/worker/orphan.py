"""Beats of a runner whose keeper is gone: for itself, until it has drained."""

from __future__ import annotations

import os
from collections.abc import Callable

from pgq_core.queries import Queries
from pgq_core.queries.upkeep import Beat
from pgq_core.service import PeriodicService
from pgq_core.worker.clock import machine_ns
from pgq_core.worker.marks import Marks
from pgq_core.worker.writer import Writer


class OrphanBeats(PeriodicService):
    """On the connection that outcomes are written on: a worker needs no more than three in any case."""

    name = "orphan_beats"
    longest_turn = 10.0

    def __init__(
        self,
        writer: Writer,
        queries: Queries,
        marks: Marks,
        *,
        worker_id: str,
        interval: float,
        on_lost: Callable[[], None],
    ) -> None:
        super().__init__(interval=interval)
        self._writer = writer
        self._queries = queries
        self._marks = marks
        self._worker_id = worker_id
        self._on_lost = on_lost

    async def run_once(self) -> None:
        sent = machine_ns()
        conn = await self._writer.connection()
        marks = self._marks
        beat = Beat(
            self._worker_id, os.getpid(), "draining", marks.running, marks.finished, marks.failed, marks.late_writes
        )
        row = await self._queries.beat_workers([beat]).fetch_one(conn)
        if row is None or row.is_ended or (row.wanted is None and not row.is_locked):
            self._on_lost()  # others may have our jobs already, also where somebody has deleted our row
        elif not row.is_locked:
            marks.last_beat_ns = sent

    async def stopped(self) -> None:
        """Nobody else will write down how it ended."""
        marks = self._marks
        statement = self._queries.end_worker(
            worker_id=self._worker_id,
            state="stopped",
            exit_code=0,
            exit_signal=None,
            exit_reason="its keeper was gone: drained by itself",
            last_output=None,
            finished=marks.finished,
            failed=marks.failed,
            late_writes=marks.late_writes,
        )
        await statement.execute(await self._writer.connection())
