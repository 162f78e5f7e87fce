"""How jobs look on paper."""

from __future__ import annotations

from collections.abc import Sequence

from pgq_core.cli.output import plain, print_fields, print_json, print_table, print_text, raw_json, say
from pgq_core.cli.run_views import print_runs
from pgq_core.domain.snapshot import JobRecord, JobView, LiveJob

COLUMNS = (">ID", "QUEUE", "TYPE", "STATUS", ">PRIORITY", ">ATTEMPTS", "DUE", "WORKER", "KEY", "LAST ERROR")


def print_jobs(jobs: Sequence[JobView], *, as_json: bool) -> None:
    if as_json:
        print_json(jobs)
        return
    print_table(COLUMNS, [_row(job) for job in jobs], nothing="no jobs")


def say_unknown_types(jobs: Sequence[JobView]) -> None:
    """A job that nobody can run looks like any other, so it has to be said."""
    for job_type in sorted({job.job_type for job in jobs if job.no_worker_knows_type}):
        say(f"no worker knows type {job_type}: pass its module to pgq-core worker --app")


def _say_why_it_waits(live: LiveJob) -> None:
    say_unknown_types([live.job])
    if live.no_worker_serves_queue:
        say(f"no worker that is alive serves queue {live.job.queue}")
    if live.is_queue_paused:
        say(f"queue {live.job.queue} is paused: pgq-core queues resume {live.job.queue}")


def _row(job: JobView) -> tuple[object, ...]:
    return (
        job.id,
        job.queue,
        job.job_type,
        job.status,
        job.priority,
        f"{job.attempts}/{job.max_attempts}",
        job.not_before,
        job.locked_by,
        job.idempotency_key,
        job.last_error,
    )


def print_record(record: JobRecord, *, as_json: bool) -> None:
    if as_json:
        print_json({**plain(record), "live": _live_json(record.live) if record.live else None})
        return
    print_fields(
        (
            ("job", record.id),
            ("state", record.state),
            ("replay of", record.replayed_from),
            *(_live_fields(record.live) if record.live else ()),
        )
    )
    if record.live:
        _print_payload(record.live)
        _say_why_it_waits(record.live)
    for letter in record.dead_letters:
        print_text(
            f"\ndead letter {letter.id} ({letter.reason}, {letter.resolution or 'unresolved'}): {letter.last_error}"
        )
        if letter.replayed_job_id is not None:
            print_text(f"  replayed as job {letter.replayed_job_id}")
    if record.runs:
        print_text("\nruns:")
        print_runs(record.runs, as_json=False)


def _live_json(live: LiveJob) -> dict[str, object]:
    job, rest = plain(live.job), plain(live)
    del rest["job"]
    return {**job, **rest, "payload": raw_json(live.payload_text) if _is_whole(live) else None}


def _is_whole(live: LiveJob) -> bool:
    return live.payload_size <= len(live.payload_text.encode())


def _live_fields(live: LiveJob) -> tuple[tuple[str, object], ...]:
    job = live.job
    return (
        ("queue", job.queue),
        ("type", job.job_type),
        ("priority", job.priority),
        ("attempts", f"{job.attempts} of {job.max_attempts}"),
        ("due", job.not_before),
        ("enqueued", job.created_at),
        ("key", job.idempotency_key),
        ("waits for", job.waiting_for),
        ("worker", job.locked_by),
        ("claimed", live.locked_at),
        ("timeout", live.timeout),
        ("last error", job.last_error),
        ("asked to stop", live.cancel_requested or None),
        ("suspect", live.is_suspect or None),
    )


def _print_payload(live: LiveJob) -> None:
    more = "" if _is_whole(live) else f" ... ({live.payload_size:,} bytes in all)"
    print_text(f"\npayload:\n{live.payload_text}{more}")


def print_dry_run(records: Sequence[JobRecord], job_ids: Sequence[int], would: str, *, as_json: bool) -> None:
    jobs = [record.live.job for record in records if record.live]
    if as_json:
        print_json({"dry_run": True, "count": len(jobs), "ids": [job.id for job in jobs], "sample": jobs[:10]})
    else:
        print_jobs(jobs[:10], as_json=False)
    missing = f"; {len(job_ids) - len(jobs)} are no live jobs" if len(job_ids) > len(jobs) else ""
    say(f"{len(jobs)} {would}{missing}; nothing was changed")
