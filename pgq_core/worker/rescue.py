"""What becomes of the jobs that a dead runner still held: pure decisions by what its keeper saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from pgq_core.domain.decision import Decision, FailureKind, Reschedule, decide_after_failure
from pgq_core.domain.job import Outcome
from pgq_core.queries.claims import BuriedJob, RescheduledJob
from pgq_core.queries.orphans import OrphanRow
from pgq_core.worker.marks import Mark

MOST_SUSPECTS = 16
"""Of jobs that were through when their worker died: each runs alone next time, which takes its time."""


class Blame(StrEnum):
    """Whose fault a runner's end was, as far as its keeper saw."""

    JOBS = "jobs"
    """It died by itself: something that ran in it is to blame."""
    OVERDUE = "overdue"
    """It was killed since a job held it up beyond its time limit."""
    NOBODY = "nobody"
    """It was stopped, drained, fenced: the interrupted jobs are innocent."""


@dataclass(slots=True)
class Rescue:
    """The writes that give a dead runner's jobs back."""

    released: list[tuple[int, int]] = field(default_factory=list)
    rescheduled: list[RescheduledJob] = field(default_factory=list)
    buried: list[BuriedJob] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.released) + len(self.rescheduled) + len(self.buried)


def rescue_of(
    orphans: Iterable[OrphanRow],
    marks: Iterable[Mark],
    *,
    blame: Blame,
    words: str,
    monotonic_ns: int,
    random: Random,
) -> Rescue:
    """`words`: what happened to the worker ("worker died: SIGKILL"); `marks`: what it had started."""
    started: Mapping[int, Mark] = {mark.job_id: mark for mark in marks}
    rows = list(orphans)
    at_fault = [row for row in rows if row.id in started and not started[row.id].has_ended]
    ended = [row for row in rows if row.id in started and started[row.id].has_ended]
    # Nothing ran when it died: one of those that were just through did it. Unless they are many, they run alone now.
    are_suspect = blame is Blame.JOBS and not at_fault and len(ended) <= MOST_SUSPECTS
    rescue = Rescue()
    for row in rows:
        mark = started.get(row.id)
        if mark is None:
            rescue.released.append((row.id, row.claim_token))
            continue
        if mark.has_ended:
            kind = _failure_after_the_end(row, blame, is_alone=len(started) == 1)
            is_suspect = row.suspect or are_suspect
        else:
            kind = _failure_of(mark, blame, len(at_fault), monotonic_ns)
            is_suspect = row.suspect
        error_class = None if kind is None else _ERROR_CLASSES.get(kind)
        decision = _decision(row, kind, blame, random, is_suspect=is_suspect)
        write = row.closed(decision, error=_text(kind, words), error_class=error_class)
        match write:
            case RescheduledJob():
                rescue.rescheduled.append(write)
            case BuriedJob():
                rescue.buried.append(write)
    return rescue


def _failure_after_the_end(row: OrphanRow, blame: Blame, *, is_alone: bool) -> FailureKind | None:
    """Of a job whose handler was through: unpaid but counted, until it does it again with nothing else beside it."""
    if blame is not Blame.JOBS:
        return None
    return FailureKind.CRASH if is_alone and row.suspect else FailureKind.VANISHED


def _failure_of(mark: Mark, blame: Blame, at_fault: int, monotonic_ns: int) -> FailureKind | None:
    """How the attempt failed; None when it was only interrupted."""
    match blame:
        case Blame.NOBODY:
            return None
        case Blame.OVERDUE:
            return FailureKind.TIMEOUT if 0 < mark.deadline_ns <= monotonic_ns else None
        case Blame.JOBS:
            return FailureKind.CRASH if at_fault == 1 else FailureKind.CRASH_AMONG_OTHERS


def _decision(row: OrphanRow, kind: FailureKind | None, blame: Blame, random: Random, *, is_suspect: bool) -> Decision:
    if kind is None:
        outcome = Outcome.LOST if blame is Blame.JOBS else Outcome.RELEASED
        return Reschedule(outcome, charge=0, delay=None, suspect=row.suspect)
    return decide_after_failure(
        kind,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        losses=row.losses,
        suspect=is_suspect,
        policy=row.policy,
        random=random,
    )


def _text(kind: FailureKind | None, words: str) -> str:
    match kind:
        case None:
            return f"interrupted: {words}"
        case FailureKind.TIMEOUT:
            return f"time limit passed, and the job did not stop: {words}"
        case _:
            return words


_ERROR_CLASSES = {
    FailureKind.TIMEOUT: "TimeLimitPassed",
    FailureKind.CRASH: "WorkerDied",
    FailureKind.CRASH_AMONG_OTHERS: "WorkerDied",
}
