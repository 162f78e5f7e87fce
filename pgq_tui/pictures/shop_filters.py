"""Which rows of the shop a filter keeps."""

from __future__ import annotations

from collections.abc import Sequence

from pgq_core.domain.filters import DeadLetterFilters, JobFilters, Resolution, RunFilters
from pgq_core.domain.snapshot import DeadLetterView, JobView, RunningView, RunView


def run_matches(run: RunView, wanted: RunFilters) -> bool:
    return (
        wanted.queue in {None, run.queue}
        and wanted.job_type in {None, run.job_type}
        and (not wanted.outcomes or run.outcome in wanted.outcomes)
        and wanted.worker_id in {None, run.worker_id}
        and wanted.job_id in {None, run.job_id}
        and _has_text(wanted.text, (run.error, run.job_type, str(run.job_id)))
    )


def running_matches(run: RunningView, wanted: RunFilters) -> bool:
    return (
        wanted.queue in {None, run.queue}
        and wanted.job_type in {None, run.job_type}
        and wanted.worker_id in {None, run.worker_id}
    )


def job_matches(job: JobView, wanted: JobFilters) -> bool:
    return (
        wanted.queue in {None, job.queue}
        and wanted.job_type in {None, job.job_type}
        and wanted.status in {None, job.status}
    )


def letter_matches(letter: DeadLetterView, wanted: DeadLetterFilters) -> bool:
    return (
        wanted.queue in {None, letter.queue}
        and wanted.job_type in {None, letter.job_type}
        and wanted.reason in {None, letter.reason}
        and wanted.fingerprint in {None, letter.fingerprint or ""}
        and _is_resolved_so(letter, wanted.resolution)
        and _has_text(wanted.text, (letter.last_error, letter.error_class, letter.job_type))
    )


def _is_resolved_so(letter: DeadLetterView, wanted: Resolution) -> bool:
    if wanted is Resolution.ANY:
        return True
    return letter.resolution == (None if wanted is Resolution.UNRESOLVED else wanted.value)


def _has_text(text: str | None, values: Sequence[str | None]) -> bool:
    return text is None or any(text.casefold() in value.casefold() for value in values if value)
