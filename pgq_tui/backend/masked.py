"""A backend that hides secrets: what screens, dialogs and the clipboard never get they cannot show."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

from pgq_core.domain.audit import AuditRule
from pgq_core.domain.filters import DeadLetterFilters, JobFilters, RunFilters
from pgq_core.domain.job import JSON
from pgq_core.domain.masking import Mask
from pgq_core.domain.operation import ActionResult, BulkResult, OperationView, Preview
from pgq_core.domain.snapshot import (
    Count,
    DeadGroup,
    DeadLetterDetail,
    DeadLetterView,
    JobCursor,
    JobPage,
    JobRecord,
    JobView,
    LiveJob,
    Overview,
    PoolView,
    QueueView,
    RunDetail,
    RunningView,
    RunView,
    WorkerView,
)
from pgq_tui.backend.protocol import Backend

_Erring = TypeVar("_Erring", JobView, QueueView)


class MaskedBackend:
    """Implements `Backend` on top of another one: payloads and results by their keys, words of programs by their sense.

    Verbs speak of ids alone, so nothing that is hidden here is ever written back.
    """

    def __init__(self, inner: Backend, mask: Mask) -> None:
        self._inner = inner
        self._mask = mask

    @property
    def is_read_only(self) -> bool:
        return self._inner.is_read_only

    @property
    def address(self) -> str:
        return self._inner.address

    @property
    def url(self) -> str:
        return self._inner.url

    async def close(self) -> None:
        await self._inner.close()

    # Reads.

    async def overview(self, window: timedelta) -> Overview:
        view = await self._inner.overview(window)
        return replace(
            view,
            queues=tuple(self._erring(queue) for queue in view.queues),
            workers=tuple(self._worker(worker) for worker in view.workers),
            pools=tuple(self._pool(pool) for pool in view.pools),
        )

    async def latest_runs(self, limit: int, filters: RunFilters) -> tuple[RunView, ...]:
        return self._runs(await self._inner.latest_runs(limit, filters))

    async def runs_after(
        self, run_id: int, seen: Collection[int], limit: int, filters: RunFilters
    ) -> tuple[RunView, ...]:
        return self._runs(await self._inner.runs_after(run_id, seen, limit, filters))

    async def running_jobs(self, filters: RunFilters, limit: int) -> tuple[RunningView, ...]:
        return await self._inner.running_jobs(filters, limit)

    async def run(self, run_id: int) -> RunDetail | None:
        found = await self._inner.run(run_id)
        if found is None:
            return None
        return replace(
            found,
            run=self._run(found.run),
            traceback=self._words(found.traceback),
            result_text=self._json(found.result_text),
        )

    async def jobs(self, filters: JobFilters, after: JobCursor | None = None) -> JobPage:
        page = await self._inner.jobs(filters, after)
        return replace(page, jobs=tuple(self._erring(job) for job in page.jobs))

    async def job(self, job_id: int) -> JobRecord | None:
        found = await self._inner.job(job_id)
        if found is None:
            return None
        return replace(
            found,
            live=self._live(found.live) if found.live else None,
            runs=self._runs(found.runs),
            dead_letters=self._letters(found.dead_letters),
        )

    async def dead_letters(self, filters: DeadLetterFilters, before: int | None = None) -> tuple[DeadLetterView, ...]:
        return self._letters(await self._inner.dead_letters(filters, before))

    async def count_dead_letters(self, filters: DeadLetterFilters) -> Count:
        return await self._inner.count_dead_letters(filters)

    async def dead_groups(self) -> tuple[DeadGroup, ...]:
        groups = await self._inner.dead_groups()
        return tuple(replace(group, sample_error=self._mask.prose(group.sample_error)) for group in groups)

    async def dead_letter(self, letter_id: int) -> DeadLetterDetail | None:
        found = await self._inner.dead_letter(letter_id)
        if found is None:
            return None
        return replace(
            found,
            letter=self._letter(found.letter),
            traceback=self._words(found.traceback),
            payload_text=self._mask.text(found.payload_text),
            original_payload_text=self._json(found.original_payload_text),
            attempt_log=self._log(found.attempt_log),
            note=self._words(found.note),
        )

    async def preview_dead_letters(self, filters: DeadLetterFilters, limit: int) -> Preview:
        preview = await self._inner.preview_dead_letters(filters, limit)
        return replace(preview, sample=self._letters(preview.sample))

    async def worker_output(self, worker_id: str) -> str | None:
        return self._words(await self._inner.worker_output(worker_id))

    async def operations(self, limit: int) -> tuple[OperationView, ...]:
        return tuple(replace(one, reason=self._words(one.reason)) for one in await self._inner.operations(limit))

    # Verbs.

    async def pause(self, queue: str, reason: str | None) -> ActionResult:
        return await self._inner.pause(queue, reason)

    async def resume(self, queue: str) -> ActionResult:
        return await self._inner.resume(queue)

    async def set_audit(self, queue: str, rule: AuditRule) -> ActionResult:
        return await self._inner.set_audit(queue, rule)

    async def replay(self, letter_ids: Sequence[int]) -> BulkResult:
        return await self._inner.replay(letter_ids)

    async def discard(self, letter_ids: Sequence[int]) -> BulkResult:
        return await self._inner.discard(letter_ids)

    async def undo(self, operation_id: int) -> BulkResult:
        return await self._inner.undo(operation_id)

    async def cancel(self, job_ids: Sequence[int]) -> BulkResult:
        return await self._inner.cancel(job_ids)

    async def scale(self, host: str, pool: str, wanted: int) -> ActionResult:
        return await self._inner.scale(host, pool, wanted)

    async def scale_by(self, host: str, pool: str, change: int) -> ActionResult:
        return await self._inner.scale_by(host, pool, change)

    async def drain_worker(self, worker_id: str) -> ActionResult:
        return await self._inner.drain_worker(worker_id)

    async def restart_worker(self, worker_id: str) -> ActionResult:
        return await self._inner.restart_worker(worker_id)

    # What is hidden where.

    def _words(self, text: str | None) -> str | None:
        return self._mask.prose(text) if text else text

    def _json(self, text: str | None) -> str | None:
        return self._mask.text(text) if text else text

    def _erring(self, view: _Erring) -> _Erring:
        return replace(view, last_error=self._words(view.last_error)) if view.last_error else view

    def _worker(self, worker: WorkerView) -> WorkerView:
        loops = tuple(replace(one, error=self._words(one.error)) if one.error else one for one in worker.loops)
        return replace(worker, exit_reason=self._words(worker.exit_reason), loops=loops)

    def _pool(self, pool: PoolView) -> PoolView:
        return replace(pool, state_detail=self._words(pool.state_detail)) if pool.state_detail else pool

    def _run(self, run: RunView) -> RunView:
        return replace(run, error=self._words(run.error)) if run.error else run

    def _runs(self, runs: Sequence[RunView]) -> tuple[RunView, ...]:
        return tuple(self._run(run) for run in runs)

    def _letter(self, letter: DeadLetterView) -> DeadLetterView:
        return replace(letter, last_error=self._mask.prose(letter.last_error))

    def _letters(self, letters: Sequence[DeadLetterView]) -> tuple[DeadLetterView, ...]:
        return tuple(self._letter(letter) for letter in letters)

    def _live(self, live: LiveJob) -> LiveJob:
        return replace(live, job=self._erring(live.job), payload_text=self._mask.text(live.payload_text))

    def _log(self, log: JSON) -> JSON:
        """The attempts of a dead letter: whatever somebody put there, with its words looked through."""
        if isinstance(log, dict):
            return {key: self._log(item) for key, item in self._mask.value(log).items()}
        if isinstance(log, list):
            return [self._log(item) for item in log]
        return self._mask.prose(log) if isinstance(log, str) else log
