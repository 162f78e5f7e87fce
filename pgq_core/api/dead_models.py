"""Bodies of requests and answers about dead letters, as OpenAPI describes them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints, model_validator

from pgq_core.api.models import LARGEST_ID, Answer, AnyJson, Body, CountAnswer, Id, Moment, Reason
from pgq_core.domain.filters import NO_FINGERPRINT, DeadLetterFilters, Resolution
from pgq_core.domain.job import DeathReason

MOST_AT_ONCE = 50_000
"""Dead letters that one bulk request can act on."""
MOST_IDS = 10_000
LONGEST_SPREAD = 86400.0
NO_FINGERPRINT_WORD = "none"

Text = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00]*$")]


class DeadJobFilter(Body):
    """Which dead letters; everything that is given has to fit. `fingerprint` "none": those that have none."""

    queue: Text | None = None
    type: Text | None = None
    reason: DeathReason | None = None
    fingerprint: Text | None = None
    text: Text | None = Field(None, description="Found in the error, its class or the type; no pattern, no case.")
    died_after: Moment | None = None
    died_before: Moment | None = None

    @property
    def filters(self) -> DeadLetterFilters:
        return self.filters_of(Resolution.UNRESOLVED)

    def filters_of(self, resolution: Resolution) -> DeadLetterFilters:
        return DeadLetterFilters(
            queue=self.queue,
            job_type=self.type,
            reason=None if self.reason is None else self.reason.value,
            fingerprint=NO_FINGERPRINT if self.fingerprint == NO_FINGERPRINT_WORD else self.fingerprint,
            text=self.text,
            died_after=self.died_after,
            died_before=self.died_before,
            resolution=resolution,
        )


class DeadJobQuery(DeadJobFilter):
    """The query of the list."""

    resolution: Resolution = Resolution.UNRESOLVED
    limit: int = Field(50, ge=1, le=200)
    before: int | None = Field(None, ge=1, le=LARGEST_ID, description="`next` of the page before.")
    total: bool = Field(default=False, description="Also count all that match, up to 10,000.")


class BulkBody(Body):
    """Which ones, said in exactly one way: `ids`, a `filter`, or the `selection` that a preview answered.

    With `dry_run` nothing is changed: the answer tells how many there are, shows some, and names a selection. A request
    with that selection acts on exactly those, whatever died since.
    """

    ids: list[Id] | None = Field(None, min_length=1, max_length=MOST_IDS)
    filter: DeadJobFilter | None = Field(None, description="Unresolved ones that fit; `{}` only together with `all`.")
    selection: Text | None = None
    all: bool = Field(default=False, description="Has to be true for a filter that lets everything through.")
    dry_run: bool = False
    reason: Reason | None = Field(None, description="Why, for the audit.")

    @model_validator(mode="after")
    def _says_which_ones_once(self) -> BulkBody:
        if sum(given is not None for given in (self.ids, self.filter, self.selection)) != 1:
            raise ValueError("give exactly one of ids, filter and selection")
        if self.filter is not None and self.all == self.filter.filters.narrows:
            raise ValueError("say which ones in the filter, or say all: true")
        return self


class RequeueManyBody(BulkBody):
    spread_seconds: float | None = Field(
        None,
        ge=0,
        le=LONGEST_SPREAD,
        description="The jobs become due evenly over this time. Left out: more than 100 at a rate of 100 per second.",
    )


class DeadJob(Answer):
    """A dead letter as lists show it: no payload, a long error cut."""

    id: int
    original_job_id: int
    queue: str
    job_type: str | None
    reason: str
    error_class: str | None
    last_error: str
    attempts: int
    max_attempts: int
    fingerprint: str | None
    last_worker: str | None
    died_at: datetime
    resolution: str | None
    resolved_at: datetime | None
    resolved_by: str | None
    replayed_job_id: int | None
    replayed_from: int | None


class DeadJobPage(Answer):
    items: list[DeadJob]
    next: int | None = Field(description="Pass it as `before` for the next page; null on the last one.")
    total: CountAnswer | None = Field(None, description="How many match, when `total=true` was asked for.")


class DeadGroupAnswer(Answer):
    """Unresolved dead letters of one kind of failure."""

    fingerprint: str | None
    job_type: str | None
    queue: str
    error_class: str | None
    sample_error: str
    count: CountAnswer
    first_at: datetime
    last_at: datetime


class DeadGroups(Answer):
    groups: list[DeadGroupAnswer]


class DeadJobDetail(DeadJob):
    """All that is known of a dead letter."""

    priority: int
    idempotency_key: str | None
    created_at: datetime | None
    traceback: str | None
    payload: AnyJson = Field(description="With secrets masked; null when it is too large or cannot be read.")
    payload_excerpt: str | None = Field(description="The beginning of a payload that is too large, masked.")
    payload_bytes: int
    attempt_log: AnyJson = Field(description="A short record of its attempts.")
    note: str | None
    follow_up: str | None = Field(description="Where the job of its replay stands now.")


class Requeued(Answer):
    id: int
    job_id: int = Field(description="The new job.")
    operation_id: int | None


class Discarded(Answer):
    id: int
    operation_id: int | None


class BulkPreview(Answer):
    """What a bulk request would act on."""

    selection: str = Field(description="Names exactly these dead letters for an hour.")
    count: int
    more: bool = Field(description=f"Whether more match: at most {MOST_AT_ONCE:,} at a time, the newest ones.")
    sample: list[DeadJob] = Field(description="The newest ones.")


class RefusedItem(Answer):
    id: int
    refusal: str


class BulkDone(Answer):
    operation_id: int | None
    done: int
    refused: int
    refusals: list[RefusedItem] = Field(description="The first 100 refusals.")


class BulkAnswer(Answer):
    """With `dry_run` the preview, else what was done."""

    preview: BulkPreview | None = None
    result: BulkDone | None = None


class Undone(Answer):
    operation_id: int | None
    done: int
    refused: int
    refusals: list[RefusedItem]
