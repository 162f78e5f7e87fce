"""Outcomes on their way into the database, sorted by the statement that writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import psycopg

from pgq_core.database import first_line
from pgq_core.domain.text import storable
from pgq_core.queries.claims import BuriedJob, ClaimedRow, FinishedJob, RescheduledJob
from pgq_core.worker.attempt import PLAIN_SUCCESS, Attempt, PlainSuccess, Write


@dataclass(slots=True)
class Batch:
    """`is_repeated`: part of it may have been written before, when the connection broke under it."""

    is_repeated: bool = False
    succeeded: list[Attempt] = field(default_factory=list)
    finished: list[tuple[FinishedJob, Attempt]] = field(default_factory=list)
    rescheduled: list[tuple[RescheduledJob, Attempt]] = field(default_factory=list)
    letters: list[tuple[BuriedJob, Attempt | None]] = field(default_factory=list)
    released: list[ClaimedRow] = field(default_factory=list)
    unwritten: list[Attempt] = field(default_factory=list)
    """Nothing is to be written for these."""

    def __len__(self) -> int:
        groups = (self.succeeded, self.finished, self.rescheduled, self.letters, self.released, self.unwritten)
        return sum(len(group) for group in groups)

    def add(self, attempts: Sequence[Attempt]) -> None:
        self.succeeded += [attempt for attempt in attempts if attempt.write is PLAIN_SUCCESS]
        if len(self.succeeded) < len(attempts):
            for attempt in attempts:
                if attempt.write is not PLAIN_SUCCESS:
                    self._add(attempt)

    def _add(self, attempt: Attempt) -> None:
        write = attempt.write
        if attempt.is_written:
            self.unwritten.append(attempt)
            return
        match write:
            case FinishedJob():
                self.finished.append((write, attempt))
            case RescheduledJob():
                self.rescheduled.append((write, attempt))
            case BuriedJob():
                self.letters.append((write, attempt))
            case _:
                self.unwritten.append(attempt)

    def attempts(self) -> list[Attempt]:
        return [
            *self.succeeded,
            *(attempt for _, attempt in self.finished),
            *(attempt for _, attempt in self.rescheduled),
            *(attempt for _, attempt in self.letters if attempt is not None),
            *self.unwritten,
        ]

    def queues(self) -> list[str]:
        """Of what has run or was handed back; a job that ends without having run names none."""
        return [*(attempt.row.queue for attempt in self.attempts()), *(row.queue for row in self.released)]

    def take_out(self, job_ids: set[int]) -> list[Batch]:
        """What is to be written about these jobs, as batches of one; it is no longer in this one."""
        parts = [part for part in self._parts() if not job_ids.isdisjoint(part.job_ids())]
        self.succeeded = [attempt for attempt in self.succeeded if attempt.row.id not in job_ids]
        self.finished = [pair for pair in self.finished if pair[0].id not in job_ids]
        self.rescheduled = [pair for pair in self.rescheduled if pair[0].id not in job_ids]
        self.letters = [pair for pair in self.letters if pair[0].id not in job_ids]
        self.released = [row for row in self.released if row.id not in job_ids]
        return parts

    def take_in(self, other: Batch) -> None:
        self.add(other.attempts())
        self.letters += [pair for pair in other.letters if pair[1] is None]
        self.released += other.released

    def _parts(self) -> Iterator[Batch]:
        """Each thing that is to be written, alone."""
        is_repeated = self.is_repeated
        yield from (Batch(is_repeated, succeeded=[attempt]) for attempt in self.succeeded)
        yield from (Batch(is_repeated, finished=[pair]) for pair in self.finished)
        yield from (Batch(is_repeated, rescheduled=[pair]) for pair in self.rescheduled)
        yield from (Batch(is_repeated, letters=[pair]) for pair in self.letters)
        yield from (Batch(is_repeated, released=[row]) for row in self.released)

    def job_ids(self) -> list[int]:
        return [
            *(attempt.row.id for attempt in self.attempts()),
            *(letter.id for letter, attempt in self.letters if attempt is None),
            *(row.id for row in self.released),
        ]


def simplified(attempt: Attempt, error: psycopg.Error) -> Write | None:
    """The same outcome without what the database would not take, and words in its place."""
    words = storable(f"not storable: {first_line(error)}", limit=500)
    write = attempt.write
    match write:
        case PlainSuccess():
            return FinishedJob(attempt.row.id, attempt.row.claim_token, None, None, error=f"times {words}")
        case FinishedJob():
            return write._replace(result=None, error=f"result {words}")
        case RescheduledJob():
            return replace(write, delay=0.0 if write.delay else write.delay, error=f"error {words}", traceback=None)
        case BuriedJob():
            return replace(write, error=f"error {words}", traceback=None)
        case None:
            return None
