"""A backend whose world is a `Shop` in memory: verbs change it, no time passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count

from pgq_core.domain.audit import AuditRule
from pgq_core.domain.filters import DeadLetterFilters, JobFilters, RunFilters
from pgq_core.domain.operation import ActionResult, BulkResult, ItemResult, OperationView, Preview
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
    ServerView,
    WorkerView,
)
from pgq_tui.backend.protocol import PAGE_SIZE
from pgq_tui.pictures.shop import Shop, busy_shop
from pgq_tui.pictures.shop_filters import job_matches, letter_matches, run_matches, running_matches

_OPERATOR = "ada"


class ShopBackend:
    """Implements `Backend`; answers at once and never fails."""

    address = "app@db-1/jobs"
    url = "postgresql://app@db-1/jobs"

    def __init__(self, shop: Shop | None = None, *, is_read_only: bool = False) -> None:
        self.shop = busy_shop() if shop is None else shop
        self.is_read_only = is_read_only
        self._numbers = count(1)
        self._undo: dict[int, tuple[int, ...]] = {}

    async def close(self) -> None:
        """Nothing is held."""

    async def overview(self, window: timedelta) -> Overview:
        shop = self.shop
        return Overview(
            taken_at=shop.now,
            server=ServerView("18.6", "jobs", "app", "db-1", 0.003, self.is_read_only),
            queues=tuple(shop.queues),
            workers=tuple(shop.workers),
            pools=tuple(shop.pools),
            supervisors=tuple(shop.supervisors),
            throughput=shop.throughput(window),
            dead_unresolved=Count(sum(letter.view.resolution is None for letter in shop.letters)),
            inserted_total=881_430,
        )

    async def latest_runs(self, limit: int, filters: RunFilters) -> tuple[RunView, ...]:
        return tuple(run for run in reversed(self.shop.runs) if run_matches(run, filters))[:limit]

    async def runs_after(
        self, run_id: int, seen: Collection[int], limit: int, filters: RunFilters
    ) -> tuple[RunView, ...]:
        newer = [run for run in self.shop.runs if run.id > run_id and run.id not in seen and run_matches(run, filters)]
        return tuple(newer[:limit])

    async def running_jobs(self, filters: RunFilters, limit: int) -> tuple[RunningView, ...]:
        return tuple(run for run in self.shop.running if running_matches(run, filters))[:limit]

    async def run(self, run_id: int) -> RunDetail | None:
        run = next((run for run in self.shop.runs if run.id == run_id), None)
        if run is None:
            return None
        result = '{"sent": true}' if run.outcome == "succeeded" else None
        return RunDetail(run, None, result, len(result or ""))

    async def jobs(self, filters: JobFilters, after: JobCursor | None = None) -> JobPage:
        found = [job for job in self.shop.jobs if job_matches(job, filters) and (after is None or job.id < after.id)]
        page = tuple(found[:PAGE_SIZE])
        return JobPage(page, _cursor(page[-1]) if len(found) > PAGE_SIZE else None)

    async def job(self, job_id: int) -> JobRecord | None:
        job = next((job for job in self.shop.jobs if job.id == job_id), None)
        runs = tuple(run for run in self.shop.runs if run.job_id == job_id)
        letters = tuple(letter.view for letter in self.shop.letters if letter.view.original_job_id == job_id)
        if job is None and not runs and not letters:
            return None
        ended = "dead" if letters else runs[-1].outcome if runs else ""
        return JobRecord(job_id, job.status if job else ended, _live(job) if job else None, runs, letters, None)

    async def dead_letters(self, filters: DeadLetterFilters, before: int | None = None) -> tuple[DeadLetterView, ...]:
        found = (letter for letter in self._matching(filters) if before is None or letter.id < before)
        return tuple(found)[:PAGE_SIZE]

    async def count_dead_letters(self, filters: DeadLetterFilters) -> Count:
        return Count(len(self._matching(filters)))

    async def dead_groups(self) -> tuple[DeadGroup, ...]:
        groups: dict[str | None, list[DeadLetterView]] = {}
        for letter in self._matching(DeadLetterFilters()):
            groups.setdefault(letter.fingerprint, []).append(letter)
        return tuple(sorted((_group(letters) for letters in groups.values()), key=lambda group: -group.count.value))

    async def dead_letter(self, letter_id: int) -> DeadLetterDetail | None:
        found = next((letter for letter in self.shop.letters if letter.view.id == letter_id), None)
        return replace(found.detail, letter=found.view) if found else None

    async def preview_dead_letters(self, filters: DeadLetterFilters, limit: int) -> Preview:
        found = self._matching(filters)[:limit]
        return Preview(tuple(letter.id for letter in found), tuple(found[:10]))

    async def worker_output(self, worker_id: str) -> str | None:
        return self.shop.output.get(worker_id)

    async def operations(self, limit: int) -> tuple[OperationView, ...]:
        paused = [queue for queue in self.shop.queues if queue.paused and queue.paused_at]
        return tuple(
            OperationView(
                1, queue.paused_at or self.shop.now, _OPERATOR, "pause", f"queue {queue.name}", queue.pause_reason,
                1, 0, False, None, None,
            )
            for queue in paused[:limit]
        )  # fmt: skip

    async def pause(self, queue: str, reason: str | None) -> ActionResult:
        now = self.shop.now
        return self._change_queue(
            queue, lambda q: replace(q, paused=True, paused_at=now, paused_by=_OPERATOR, pause_reason=reason)
        )

    async def resume(self, queue: str) -> ActionResult:
        return self._change_queue(
            queue, lambda q: replace(q, paused=False, paused_at=None, paused_by=None, pause_reason=None)
        )

    async def set_audit(self, queue: str, rule: AuditRule) -> ActionResult:
        return self._change_queue(queue, lambda q: replace(q, audit=rule.audit, audit_sample=rule.share))

    async def replay(self, letter_ids: Sequence[int]) -> BulkResult:
        return self._resolve(letter_ids, "replayed")

    async def discard(self, letter_ids: Sequence[int]) -> BulkResult:
        return self._resolve(letter_ids, "discarded")

    async def undo(self, operation_id: int) -> BulkResult:
        ids = self._undo.pop(operation_id, ())
        self._change_letters(ids, lambda letter: replace(letter, resolution=None, resolved_at=None, resolved_by=None))
        return BulkResult(next(self._numbers), tuple(ItemResult(letter_id) for letter_id in ids))

    async def cancel(self, job_ids: Sequence[int]) -> BulkResult:
        items = tuple(self._cancel(job_id) for job_id in job_ids)
        return BulkResult(next(self._numbers), items)

    async def scale(self, host: str, pool: str, wanted: int) -> ActionResult:
        self.shop.pools = [
            replace(one, wanted=wanted) if (one.host, one.name) == (host, pool) else one for one in self.shop.pools
        ]
        return ActionResult(next(self._numbers))

    async def scale_by(self, host: str, pool: str, change: int) -> ActionResult:
        found = next((one for one in self.shop.pools if (one.host, one.name) == (host, pool)), None)
        if found is None:
            return ActionResult(None, f"there is no pool {pool} on {host}")
        if not found.minimum <= found.wanted + change <= found.maximum:
            return ActionResult(None, f"pool {pool} has between {found.minimum} and {found.maximum} workers")
        return await self.scale(host, pool, found.wanted + change)

    async def drain_worker(self, worker_id: str) -> ActionResult:
        return self._change_worker(worker_id, lambda worker: replace(worker, wanted="drain", state="draining"))

    async def restart_worker(self, worker_id: str) -> ActionResult:
        return self._change_worker(worker_id, lambda worker: replace(worker, wanted="restart"))

    def pool(self, name: str) -> PoolView:
        """A pool as it stands now."""
        return next(pool for pool in self.shop.pools if pool.name == name)

    def _matching(self, filters: DeadLetterFilters) -> list[DeadLetterView]:
        return [letter.view for letter in self.shop.letters if letter_matches(letter.view, filters)]

    def _cancel(self, job_id: int) -> ItemResult:
        job = next((job for job in self.shop.jobs if job.id == job_id), None)
        if job is None:
            return ItemResult(job_id, refusal="there is no such live job")
        if job.status == "running":
            return ItemResult(job_id, answer="requested")
        self.shop.jobs.remove(job)
        return ItemResult(job_id, answer="cancelled")

    def _resolve(self, letter_ids: Sequence[int], resolution: str) -> BulkResult:
        known = {letter.view.id: letter.view for letter in self.shop.letters}
        items = [_resolved(letter_id, known.get(letter_id), resolution) for letter_id in letter_ids]
        done = tuple(item.id for item in items if item.refusal is None)
        now = self.shop.now
        self._change_letters(
            done, lambda letter: replace(letter, resolution=resolution, resolved_at=now, resolved_by=_OPERATOR)
        )
        operation = next(self._numbers)
        self._undo[operation] = done
        return BulkResult(operation, tuple(items))

    def _change_letters(self, ids: Sequence[int], change: Callable[[DeadLetterView], DeadLetterView]) -> None:
        for index, letter in enumerate(self.shop.letters):
            if letter.view.id in ids:
                self.shop.letters[index] = replace(letter, view=change(letter.view))

    def _change_queue(self, name: str, change: Callable[[QueueView], QueueView]) -> ActionResult:
        self.shop.queues = [change(queue) if queue.name == name else queue for queue in self.shop.queues]
        return ActionResult(next(self._numbers))

    def _change_worker(self, worker_id: str, change: Callable[[WorkerView], WorkerView]) -> ActionResult:
        self.shop.workers = [change(one) if one.id == worker_id else one for one in self.shop.workers]
        return ActionResult(next(self._numbers))


def _resolved(letter_id: int, letter: DeadLetterView | None, resolution: str) -> ItemResult:
    if letter is None:
        return ItemResult(letter_id, refusal="there is no such dead letter")
    if letter.resolution:
        return ItemResult(letter_id, refusal=f"already {letter.resolution} by {letter.resolved_by}")
    return ItemResult(letter_id, job_id=900_000 + letter_id if resolution == "replayed" else None)


def _group(letters: Sequence[DeadLetterView]) -> DeadGroup:
    times = [letter.died_at for letter in letters]
    first = letters[0]
    return DeadGroup(
        fingerprint=first.fingerprint,
        job_type=first.job_type,
        queue=first.queue,
        error_class=first.error_class,
        sample_error=first.last_error,
        count=Count(len(letters)),
        first_at=min(times),
        last_at=max(times),
    )


def _cursor(job: JobView) -> JobCursor:
    return JobCursor(job.id, job.queue, job.priority, job.not_before, job.waiting_for)


def _live(job: JobView) -> LiveJob:
    payload = f'{{"type": "{job.job_type}", "data": {{"order": {job.id - 874_000}, "to": "lin@example.org"}}}}'
    return LiveJob(
        job=job,
        payload_text=payload,
        payload_size=len(payload),
        locked_at=job.not_before if job.locked_by else None,
        lease_until=None,
        timeout=timedelta(minutes=5),
        losses=0,
        is_suspect=False,
        cancel_requested=False,
        origin_job_id=None,
        replayed_from=None,
    )
