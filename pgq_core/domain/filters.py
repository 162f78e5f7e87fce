"""What the lists of the read side can be narrowed to. None, or an empty tuple, means: everything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

NO_FINGERPRINT = ""
"""As `fingerprint`: the dead letters that have none, such as those of an adopted table."""


class Resolution(StrEnum):
    """Which dead letters a list is about."""

    UNRESOLVED = "unresolved"
    REPLAYED = "replayed"
    DISCARDED = "discarded"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class RunFilters:
    """`text` is looked for in the error, the type and the job id, as it is: no pattern, no case."""

    queue: str | None = None
    job_type: str | None = None
    outcomes: tuple[str, ...] = ()
    worker_id: str | None = None
    job_id: int | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class JobFilters:
    """`status` None lists live jobs in every state, newest first; a status lists them in the order they will run."""

    status: str | None = None
    queue: str | None = None
    job_type: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLetterFilters:
    """`text` is looked for in the error, its class and the type, as it is: no pattern, no case."""

    queue: str | None = None
    job_type: str | None = None
    reason: str | None = None
    fingerprint: str | None = None
    text: str | None = None
    died_after: datetime | None = None
    died_before: datetime | None = None
    resolution: Resolution = Resolution.UNRESOLVED

    @property
    def narrows(self) -> bool:
        """Whether anything but the resolution is asked for: "all" has to be said in so many words."""
        return self != DeadLetterFilters(resolution=self.resolution)


ALL_RUNS = RunFilters()
ALL_JOBS = JobFilters()
UNRESOLVED = DeadLetterFilters()
