"""The jobs and runs of the shop, made by arithmetic from their number."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from pgq_core.domain.snapshot import JobView, RunningView, RunView
from pgq_tui.pictures.shop_clock import FIRST_JOB, NOW, TYPES, ago

_FAILED_OUTCOMES = {3: "retried", 11: "dead", 17: "lost", 23: "snoozed", 29: "cancelled"}
_ERRORS = {
    "retried": (
        "SMTPServerDisconnected",
        "SMTPServerDisconnected: Connection unexpectedly closed by mx2.acme.example:25",
    ),
    "dead": ("KeyError", "KeyError: 'tax_id'"),
    "lost": (None, "worker shop-1-images-90d2be04 was killed by SIGKILL"),
    "snoozed": (None, "the label printer is busy"),
    "cancelled": (None, "cancelled by ada"),
}


def shop_runs(count: int = 400) -> list[RunView]:
    return [_run(index, NOW - timedelta(seconds=(count - index) * 0.31 + 0.2)) for index in range(count)]


def _run(index: int, finished_at: datetime) -> RunView:
    queue, job_type, seconds = TYPES[index % len(TYPES)]
    outcome = next((name for every, name in _FAILED_OUTCOMES.items() if index % every == every - 1), "succeeded")
    if outcome == "dead":
        queue, job_type, seconds = "invoices", "make_invoice", 0.62
    error_class, error = _ERRORS.get(outcome, (None, None))
    if outcome == "retried" and queue != "emails":
        error_class, error = "TimeoutError", "TimeoutError: stock service did not answer within 2 s"
    worker = {"emails": "mail-5b0e77d1", "images": "images-1f20c9aa"}.get(queue, "shop-07aa51de")
    took = timedelta(seconds=round(seconds * (1 + 0.4 * math.sin(index * 1.7)), 3))
    return RunView(
        id=50_000 + index,
        job_id=FIRST_JOB - 400 + index,
        worker_id=f"shop-1-{worker}",
        queue=queue,
        job_type=job_type,
        attempt=5 if outcome == "dead" else 1 + index % 3 // 2,
        outcome=outcome,
        started_at=finished_at - took,
        finished_at=finished_at,
        error=error,
        error_class=error_class,
        due_at=finished_at - took - timedelta(seconds=1),
        enqueued_at=finished_at - took - timedelta(seconds=2),
    )


def shop_running() -> list[RunningView]:
    ages = (184.0, 12.2, 4.0, 3.1, 1.4, 1.1, 0.6, 0.4, 0.2)
    workers = {"emails": "shop-1-mail-5b0e77d1", "images": "shop-1-images-1f20c9aa"}
    rows = []
    for index, age in enumerate(ages):
        queue, job_type, _ = ("reports", "nightly_report", 0) if index == 0 else TYPES[index % len(TYPES)]
        worker = "shop-2-reports-44c0a6f2" if index == 0 else workers.get(queue, "shop-1-shop-07aa51de")
        rows.append(
            RunningView(
                FIRST_JOB + index, queue, job_type, worker, 1 + index % 3, 5, ago(seconds=age), index == 1, False
            )
        )
    return rows


def shop_jobs() -> list[JobView]:
    rows = [_running_job(run) for run in shop_running()]
    rows += [_waiting_job(index) for index in range(110)]
    return sorted(rows, key=lambda job: -job.id)


def _running_job(run: RunningView) -> JobView:
    return JobView(
        id=run.job_id,
        queue=run.queue,
        job_type=run.job_type,
        status="running",
        priority=0,
        attempts=run.attempt - 1,
        max_attempts=5,
        not_before=run.locked_at,
        created_at=run.locked_at - timedelta(seconds=20),
        locked_by=run.worker_id,
        idempotency_key=None,
        last_error=None,
        waiting_for=None,
    )


def _waiting_job(index: int) -> JobView:
    queue, job_type, _ = TYPES[index % len(TYPES)]
    is_unknown, is_retrying, is_later = (index + 1) % 19 == 0, (index + 1) % 7 == 0, (index + 1) % 5 == 0
    queue, job_type = ("imports", "import_catalogue") if is_unknown else (queue, job_type)
    due = NOW + timedelta(seconds=48 + index) if is_retrying else NOW + timedelta(hours=1 + index % 9)
    status = "scheduled" if is_retrying or (is_later and not is_unknown) else "pending"
    created = ago(seconds=130 + index * 3)
    return JobView(
        id=FIRST_JOB + 100 + index,
        queue=queue,
        job_type=job_type,
        status=status,
        priority=10 if index % 13 == 0 else 0,
        attempts=2 if is_retrying else 0,
        max_attempts=5,
        not_before=due if status == "scheduled" else created,
        created_at=created,
        locked_by=None,
        idempotency_key=f"order-{7_000 + index}" if index % 4 == 0 else None,
        last_error=_ERRORS["retried"][1] if is_retrying else None,
        waiting_for=None,
        no_worker_knows_type=is_unknown,
    )
