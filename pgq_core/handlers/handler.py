"""A handler: the function of a job type, its model and its defaults."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeAlias, TypedDict, TypeVar, Unpack

from pgq_core.domain.enqueue import checked_delay
from pgq_core.domain.job import JSON, Job
from pgq_core.domain.payload import MAX_BYTES, decode, encode
from pgq_core.domain.retry import RetryPolicy
from pgq_core.errors import InvalidPayload, MalformedData
from pgq_core.handlers.signature import is_coroutine_function, place_of

if TYPE_CHECKING:  # imported where a handler has a model: a worker without any is 10 MB smaller
    from pydantic import TypeAdapter, ValidationError

_log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")
Answer_co = TypeVar("Answer_co", covariant=True)

RetryDelay = Callable[[int, BaseException], "timedelta | float | None"]
"""A policy written in Python: (attempt that failed, its error) -> delay, or None for the announced backoff."""


Model: TypeAlias = Any
"""A pydantic model class, or any other type that pydantic validates."""


class EnqueueOptions(TypedDict, total=False):
    """What `enqueue` takes beside the data."""

    queue: str
    priority: int
    delay: timedelta | float
    not_before: datetime
    idempotency_key: str
    max_attempts: int
    timeout: timedelta | float
    trace_context: JSON
    conn: Any


class Enqueues(Protocol[Answer_co]):
    """A JobQueue (answers an EnqueuedJob) or an AsyncJobQueue (answers an awaitable of one)."""

    def enqueue(self, *args: Any, **kwargs: Any) -> Answer_co: ...  # noqa: ANN401 - both faces have their own types


@dataclass(frozen=True, eq=False)
class Handler(Generic[P, R]):
    """The function registered for a job type. Calling it calls the function, so that unit tests need no queue.

    `queue`, `max_attempts` and `timeout` are defaults that an enqueue writes into the row; None leaves the column's
    own. `policy` is what workers announce; `retry_delay` answers for single failures while a worker knows it.
    """

    type: str
    function: Callable[P, R]
    model: Model = None
    queue: str | None = None
    max_attempts: int | None = None
    timeout: timedelta | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    retry_delay: RetryDelay | None = None
    transactional: bool = False
    injected: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # The look of the function (name, docstring, signature) for tools; not by setattr, since a handler is frozen.
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(self.function, name):
                self.__dict__[name] = getattr(self.function, name)
        self.__dict__["__wrapped__"] = self.function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<handler {self.type!r}: {self.place}>"

    @functools.cached_property
    def is_async(self) -> bool:
        return is_coroutine_function(self.function)

    @functools.cached_property
    def place(self) -> str:
        """`module.function (file:line)`."""
        return place_of(self.function)

    @functools.cached_property
    def json_schema(self) -> JSON:
        """The model as JSON Schema, or None without a model."""
        return None if self._adapter is None else self._adapter.json_schema(mode="validation")

    def encode(self, data: object, *, max_bytes: int = MAX_BYTES) -> bytes:
        """JSON text of `data`, checked against the model. Raises InvalidPayload, or MalformedData by the model's word.

        Checked as the worker will read it, and stored as it was given: its defaults are filled in by the worker.
        """
        text = encode(data, max_bytes=max_bytes)
        if self._adapter is not None:
            self._validated(text)
        return text

    def bind(self, text: str | None) -> object:
        """The first argument for one call, from the JSON text of a job's data: the validated model, or the value.

        Each call makes a value of its own, so that no handler changes what another one reads. No data counts as an
        empty object. Raises MalformedData.
        """
        if text is None:
            text = "{}"
        if self._adapter is not None:
            return self._validated(text)
        try:
            return decode(text)
        except InvalidPayload as error:
            raise MalformedData(self.type, (("data", error.reason),)) from None

    def invoke(self, argument: object, *, job: Job, conn: object = None, context: object = None) -> object:
        """Calls the function with what it asked for; answers its value, or its coroutine when `is_async`."""
        offered = {"job": job, "conn": conn, "context": context}
        return self.function(argument, **{name: offered[name] for name in self.injected})  # type: ignore[arg-type]  # checked at registration

    def wished_delay(self, attempt: int, error: BaseException) -> float | None:
        """Seconds that a Python policy wishes after `attempt` failed; None where the announced backoff decides.

        A policy that raises, or answers what is no delay, is logged and passed over: the failure must be written down.
        """
        if self.retry_delay is None:
            return None
        try:
            delay = self.retry_delay(attempt, error)
            return None if delay is None else checked_delay(delay).total_seconds()
        except BaseException:  # noqa: BLE001 - it is the application's code
            _log.exception("the retry policy of %s failed; its announced backoff decides", self.type)
            return None

    def enqueue(self, queue: Enqueues[Answer_co], data: object = None, /, **fields: object) -> Answer_co:
        """Enqueues a job of this type: `send_email.enqueue(queue, to="a@example.org")`, or one ready value.

        `queue` is a JobQueue or an AsyncJobQueue (then await the answer). Options go through `options(...)`.
        """
        return Call(self, {}).enqueue(queue, data, **fields)

    def options(self, **options: Unpack[EnqueueOptions]) -> Call:
        """The same with a priority, delay, key ...: `send_email.options(priority=10).enqueue(queue, to="a@b.org")`."""
        return Call(self, options)

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any] | None:
        if self.model is None:
            return None
        from pydantic import TypeAdapter

        return TypeAdapter(self.model)

    def _validated(self, text: str | bytes) -> object:
        if self._adapter is None:
            raise TypeError(f"{self!r} has no model")
        from pydantic import ValidationError

        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            raise MalformedData(self.type, _problems(error)) from None


@dataclass(frozen=True, slots=True)
class Call:
    """A handler with the options of one enqueue."""

    handler: Handler[..., Any]
    options: EnqueueOptions

    def enqueue(self, queue: Enqueues[Answer_co], data: object = None, /, **fields: object) -> Answer_co:
        if data is not None and fields:
            raise TypeError(f"{self.handler.type}: give one value or fields by name, not both")
        return queue.enqueue(self.handler, fields if data is None else data, **self.options)


def _problems(error: ValidationError) -> tuple[tuple[str, str], ...]:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return tuple((_path(problem["loc"]), problem["msg"]) for problem in found)


def _path(location: tuple[int | str, ...]) -> str:
    return "data" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
