"""What happens around the runs of a registry: hooks and middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pgq_core.domain.job import Job
from pgq_core.errors import InvalidHandler
from pgq_core.handlers import Registry, Resources

JOB = Job(id=7, queue="default", type="t", data={})


async def test_hooks_fill_and_close_resources_in_order() -> None:
    registry = Registry()
    said: list[str] = []

    @registry.on_startup
    def first(resources: Resources) -> None:
        resources["pool"] = "open"

    @registry.on_startup
    async def second(resources: Resources) -> None:
        said.append(f"started with {resources['pool']}")

    @registry.on_shutdown
    def close_pool(resources: Resources) -> None:
        said.append("closed")

    @registry.on_shutdown
    async def stop_using_it(resources: Resources) -> None:
        said.append("stopped")

    resources: Resources = {}
    await registry.start(resources)
    await registry.stop(resources)

    assert resources == {"pool": "open"}
    assert said == ["started with open", "stopped", "closed"]


async def test_the_first_broken_startup_hook_ends_the_start() -> None:
    registry = Registry()
    called: list[str] = []
    registry.on_startup(lambda resources: 1 / 0)
    registry.on_startup(lambda resources: called.append("second"))

    with pytest.raises(ZeroDivisionError):
        await registry.start({})

    assert called == []


async def test_a_broken_shutdown_hook_does_not_keep_the_others_from_closing() -> None:
    registry = Registry()
    called: list[str] = []
    registry.on_shutdown(lambda resources: called.append("first"))
    registry.on_shutdown(lambda resources: 1 / 0)

    with pytest.raises(ExceptionGroup) as failed:
        await registry.stop({})

    assert called == ["first"]
    assert isinstance(failed.value.exceptions[0], ZeroDivisionError)


async def test_middleware_wraps_a_run_from_the_outside_in() -> None:
    registry = Registry()
    said: list[str] = []

    def named(name: str) -> Callable[[Job, Callable[[], Awaitable[Any]]], Awaitable[Any]]:
        async def around(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
            said.append(f"{name} before {job.id}")
            value = await call_next()
            said.append(f"{name} after")
            return value + 1

        return around

    registry.middleware(named("outer"))
    registry.middleware(named("inner"))

    async def run() -> int:
        said.append("run")
        return 40

    assert registry.has_middleware
    assert await registry.around(JOB, run)() == 42
    assert said == ["outer before 7", "inner before 7", "run", "inner after", "outer after"]


async def test_middleware_sees_and_may_replace_the_error() -> None:
    registry = Registry()

    @registry.middleware
    async def report(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await call_next()
        except ValueError as error:
            raise RuntimeError("reported") from error

    async def run() -> None:
        raise ValueError

    with pytest.raises(RuntimeError, match="reported"):
        await registry.around(JOB, run)()


def test_plain_middleware_is_refused() -> None:
    with pytest.raises(InvalidHandler, match="coroutine function"):
        Registry().middleware(lambda job, call_next: call_next())


def test_a_registry_takes_over_hooks_and_middleware_of_another() -> None:
    inner, outer = Registry(), Registry()
    inner.on_startup(lambda resources: None)

    @inner.middleware
    async def around(job: Job, call_next: Callable[[], Awaitable[Any]]) -> Any:
        return await call_next()

    outer.include(inner)

    assert outer.has_middleware


def test_types_are_sorted() -> None:
    registry = Registry()
    for name in ("c", "a", "b"):
        registry.handler(name)(lambda data: None)

    assert registry.types == ("a", "b", "c")
    assert len(registry) == 3
