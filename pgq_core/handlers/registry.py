"""Registries: the job types a program knows, and what happens around their runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any, ParamSpec, TypeAlias, TypeVar

from pgq_core.domain.enqueue import checked_max_attempts, checked_name, checked_timeout
from pgq_core.domain.job import Job
from pgq_core.domain.retry import RetryPolicy
from pgq_core.errors import DuplicateHandler, InvalidHandler, InvalidJob
from pgq_core.handlers.handler import Handler, Model, RetryDelay
from pgq_core.handlers.signature import injected_names, is_coroutine_function, place_of

P = ParamSpec("P")
R = TypeVar("R")

Resources: TypeAlias = dict[str, Any]
"""What `on_startup` hooks made and handlers find as `context.resources`."""
Hook: TypeAlias = Callable[[Resources], Any]
NextCall: TypeAlias = Callable[[], Awaitable[Any]]
Middleware: TypeAlias = Callable[[Job, NextCall], Awaitable[Any]]

HookT = TypeVar("HookT", bound=Hook)
MiddlewareT = TypeVar("MiddlewareT", bound=Middleware)


class Registry:
    """Handlers by job type, and what happens around their runs. The bare decorators write into the default one."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler[..., Any]] = {}
        self._startup: list[Hook] = []
        self._shutdown: list[Hook] = []
        self._middlewares: list[Middleware] = []

    def handler(
        self,
        job_type: str,
        *,
        model: Model = None,
        queue: str | None = None,
        max_attempts: int | None = None,
        timeout: timedelta | float | None = None,
        transactional: bool = False,
        backoff_base: timedelta | float | None = None,
        backoff_cap: timedelta | float | None = None,
        retry: RetryPolicy | RetryDelay | None = None,
    ) -> Callable[[Callable[P, R]], Handler[P, R]]:
        """Registers the decorated function for `job_type`.

        `model`: a pydantic model (or any type pydantic validates) for the data. `queue`, `max_attempts`, `timeout`
        (0 = none): defaults that an enqueue writes into the row. `retry`: a RetryPolicy, or a function
        (attempt, error) -> delay or None; `backoff_base` and `backoff_cap` are the short form of a policy.
        `transactional`: the function takes `conn`, the transaction in which its own SQL and the job's completion are
        committed together.

        Raises InvalidHandler for options or parameters that nobody could serve, DuplicateHandler for a known type.
        """
        if not isinstance(job_type, str):
            raise InvalidHandler(repr(job_type), 'name its job type: @handler("send_email")')

        def register(function: Callable[P, R]) -> Handler[P, R]:
            try:
                made = Handler(
                    type=checked_name("type", job_type),
                    function=function,
                    model=model,
                    queue=None if queue is None else checked_name("queue", queue),
                    max_attempts=None if max_attempts is None else checked_max_attempts(max_attempts),
                    timeout=None if timeout is None else checked_timeout(timeout),
                    policy=_policy(retry, backoff_base, backoff_cap),
                    retry_delay=None if isinstance(retry, RetryPolicy) else retry,
                    transactional=transactional,
                    injected=injected_names(function, transactional=transactional),
                )
            except (InvalidJob, ValueError) as error:
                raise InvalidHandler(place_of(function), str(error)) from error
            self.add(made)
            return made

        return register

    def add(self, handler: Handler[..., Any]) -> None:
        """Registers a ready handler, for example one of another registry. Raises DuplicateHandler."""
        known = self._handlers.setdefault(handler.type, handler)
        if known is not handler:
            raise DuplicateHandler(handler.type, known.place, handler.place)

    def include(self, other: Registry) -> None:
        """Takes over all of another registry: handlers, hooks and middleware."""
        for handler in other:
            self.add(handler)
        self._startup += other._startup
        self._shutdown += other._shutdown
        self._middlewares += other._middlewares

    def get(self, job_type: str) -> Handler[..., Any] | None:
        return self._handlers.get(job_type)

    @property
    def types(self) -> tuple[str, ...]:
        """The job types known here, sorted."""
        return tuple(sorted(self._handlers))

    def __iter__(self) -> Iterator[Handler[..., Any]]:
        return iter(list(self._handlers.values()))

    def __len__(self) -> int:
        return len(self._handlers)

    def __contains__(self, job_type: object) -> bool:
        return job_type in self._handlers

    def on_startup(self, hook: HookT) -> HookT:
        """Decorates a function (plain or coroutine) called once before the first job, to fill the dict it is given."""
        self._startup.append(hook)
        return hook

    def on_shutdown(self, hook: HookT) -> HookT:
        """Decorates a function called with the same `resources` after the last job; the last registered comes first."""
        self._shutdown.append(hook)
        return hook

    def after_shutdown(self, hook: Hook) -> None:
        """For programs that run handlers: a hook that comes after all of `on_shutdown`."""
        self._shutdown.insert(0, hook)

    def middleware(self, around: MiddlewareT) -> MiddlewareT:
        """Decorates `async def around(job, call_next)`, called around every run; the first registered is the outermost.

        It awaits `call_next()` and returns its value; what it raises instead counts as the handler's error.
        """
        if not is_coroutine_function(around):
            raise InvalidHandler(
                place_of(around), "middleware is a coroutine function: async def around(job, call_next)"
            )
        self._middlewares.append(around)
        return around

    @property
    def has_middleware(self) -> bool:
        return bool(self._middlewares)

    def around(self, job: Job, run: NextCall) -> NextCall:
        """`run` wrapped by all middleware."""
        for middleware in reversed(self._middlewares):
            run = functools.partial(middleware, job, run)
        return run

    async def start(self, resources: Resources) -> None:
        """Runs the startup hooks in order; the first error ends it."""
        for hook in self._startup:
            await _call(hook, resources)

    async def stop(self, resources: Resources) -> None:
        """Runs all shutdown hooks, the last registered first; their errors are raised together at the end."""
        errors: list[Exception] = []
        for hook in reversed(self._shutdown):
            try:
                await _call(hook, resources)
            except Exception as error:  # noqa: BLE001 - one broken hook must not keep the others from closing
                errors.append(error)
        if errors:
            raise ExceptionGroup("shutdown hooks failed", errors)


def _policy(
    retry: RetryPolicy | RetryDelay | None, base: timedelta | float | None, cap: timedelta | float | None
) -> RetryPolicy:
    if isinstance(retry, RetryPolicy):
        if base is not None or cap is not None:
            raise ValueError("give a RetryPolicy or backoff_base and backoff_cap, not both")
        return retry
    plain = RetryPolicy()
    return RetryPolicy(_span(base, plain.base), _span(cap, plain.cap))


def _span(value: timedelta | float | None, default: timedelta) -> timedelta:
    if value is None:
        return default
    return value if isinstance(value, timedelta) else timedelta(seconds=value)


async def _call(hook: Hook, resources: Resources) -> None:
    answer = hook(resources)
    if inspect.isawaitable(answer):
        await answer


default_registry = Registry()
"""The registry behind the bare decorators."""
