"""A batch being checked: what its items share is looked at once, their data and keys one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pgq_core.domain.enqueue import JobSettings, NewJob, payload_head
from pgq_core.handlers import Handler
from pgq_core.job_queue.request import JobRequest


class Checked(NamedTuple):
    """A request without its data and key. None: as the type's defaults say."""

    handler: Handler[..., Any] | None
    job_type: str
    queue: str | None
    max_attempts: int | None
    settings: JobSettings
    """Without those defaults."""


class Batch:
    """Column by column: item `n` has the settings of `shapes[shape_of[n]]`, `data[n]` as JSON text and `keys[n]`."""

    def __init__(self, check: Callable[[JobRequest], Checked]) -> None:
        self._check = check
        self._by_type: dict[object, int] = {}
        self._by_options: dict[object, int] = {}
        self.shapes: list[Checked] = []
        self.shape_of: list[int] = []
        self.data: list[bytes] = []
        self.keys: list[str | None] = []
        self.has_keys = False

    def __len__(self) -> int:
        return len(self.data)

    def shape_of_type(self, job_type: object) -> int:
        """Of an item that gives nothing but its type and data."""
        if type(job_type) not in (str, Handler):
            return self._new_shape(JobRequest(job_type))  # type: ignore[arg-type]  # checked there
        number = self._by_type.get(job_type)
        if number is None:
            number = self._by_type[job_type] = self._new_shape(JobRequest(job_type))  # type: ignore[arg-type]
        return number

    def shape_of_request(self, request: JobRequest) -> int:
        """Known by its options and their types: True is no priority, although it equals 1."""
        options = (request.priority, request.delay, request.max_attempts, request.timeout)
        if request.trace_context is not None:
            return self._new_shape(request)
        known = (request.type, request.queue, request.not_before, *options, *map(type, options))
        try:
            number = self._by_options.get(known)
        except TypeError:  # something that no request may have; its check says what
            return self._new_shape(request)
        if number is None:
            number = self._by_options[known] = self._new_shape(request)
        return number

    def payloads(self) -> list[bytes]:
        heads = [payload_head(shape.job_type).encode() for shape in self.shapes]
        return [heads[shape] + data + b"}" for shape, data in zip(self.shape_of, self.data, strict=True)]

    def jobs(self, settings: Sequence[JobSettings]) -> list[NewJob]:
        """`settings`: of each shape."""
        return [
            NewJob(self.shapes[shape].job_type, data, idempotency_key=key, **settings[shape]._asdict())
            for shape, data, key in zip(self.shape_of, self.data, self.keys, strict=True)
        ]

    def _new_shape(self, request: JobRequest) -> int:
        self.shapes.append(self._check(request))
        return len(self.shapes) - 1
