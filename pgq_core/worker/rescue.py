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
    rescue = Rescue()
    for row in rows:
        mark = started.get(row.id)
        if mark is None:
            rescue.released.append((row.id, row.claim_token))
            continue
        if mark.has_ended:  # unpaid, but counted: what brings its worker down right after it has no end otherwise
            kind = FailureKind.VANISHED if blame is Blame.JOBS else None
        else:
            kind = _failure_of(mark, blame, len(at_fault), monotonic_ns)
        error_class = None if kind is None else _ERROR_CLASSES.get(kind)
        write = row.closed(_decision(row, kind, blame, random), error=_text(kind, words), error_class=error_class)
        match write:
            case RescheduledJob():
                rescue.rescheduled.append(write)
            case BuriedJob():
                rescue.buried.append(write)
    return rescue


def _failure_of(mark: Mark, blame: Blame, at_fault: int, monotonic_ns: int) -> FailureKind | None:
    """How the attempt failed; None when it was only interrupted."""
    match blame:
        case Blame.NOBODY:
            return None
        case Blame.OVERDUE:
            return FailureKind.TIMEOUT if 0 < mark.deadline_ns <= monotonic_ns else None
        case Blame.JOBS:
            return FailureKind.CRASH if at_fault == 1 else FailureKind.CRASH_AMONG_OTHERS


def _decision(row: OrphanRow, kind: FailureKind | None, blame: Blame, random: Random) -> Decision:
    if kind is None:
        outcome = Outcome.LOST if blame is Blame.JOBS else Outcome.RELEASED
        return Reschedule(outcome, charge=0, delay=None, suspect=row.suspect)
    return decide_after_failure(
        kind,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        losses=row.losses,
        suspect=row.suspect,
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
