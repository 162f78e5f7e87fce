"""A handler: registration, what is injected, its model, its plain call."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from pgq_core.domain.job import Job
from pgq_core.domain.retry import RetryPolicy
from pgq_core.errors import DuplicateHandler, InvalidHandler, InvalidPayload, MalformedData
from pgq_core.handlers import Registry

JOB = Job(id=7, queue="default", type="t", data={"to": ["a"]})


class Invoice(BaseModel):
    customer: int
    total: Decimal
    due: datetime | None = None


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    at: datetime

    @field_validator("at")
    @classmethod
    def _not_too_old(cls, at: datetime) -> datetime:
        if at.year < 2000:
            raise ValueError("before our time")
        return at


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_a_decorated_function_stays_callable(registry: Registry) -> None:
    @registry.handler("greet")
    def greet(data: dict[str, str], context: object = None) -> str:
        """Says hello."""
        return f"hello {data['name']}"

    assert greet({"name": "you"}) == "hello you"
    assert (greet.__name__, greet.__doc__) == ("greet", "Says hello.")  # type: ignore[attr-defined]  # taken over from the function
    assert list(inspect.signature(greet).parameters) == ["data", "context"]
    assert registry.get("greet") is greet
    assert "greet" in registry
    assert repr(greet).startswith("<handler 'greet': ")


async def test_a_coroutine_function_stays_awaitable(registry: Registry) -> None:
    @registry.handler("double")
    async def double(number: int) -> int:
        return 2 * number

    assert double.is_async
    assert await double(4) == 8
    assert await double.invoke(4, job=JOB) == 8  # type: ignore[misc]  # a coroutine, since the handler is one


def test_an_object_with_an_asynchronous_call_is_a_coroutine_handler(registry: Registry) -> None:
    class Sender:
        async def __call__(self, data: object) -> None: ...

    assert registry.handler("send")(Sender()).is_async


def test_options_are_kept_with_their_types(registry: Registry) -> None:
    @registry.handler(
        "bill",
        model=Invoice,
        queue="billing",
        max_attempts=8,
        timeout=30,
        backoff_base=2,
        backoff_cap=timedelta(minutes=1),
    )
    def bill(invoice: Invoice) -> None: ...

    assert (bill.queue, bill.max_attempts, bill.timeout) == ("billing", 8, timedelta(seconds=30))
    assert bill.policy == RetryPolicy(timedelta(seconds=2), timedelta(minutes=1))
    assert bill.json_schema["required"] == ["customer", "total"]


def test_only_what_was_asked_for_is_injected(registry: Registry) -> None:
    @registry.handler("plain")
    def plain(data: object) -> tuple[object, ...]:
        return (data,)

    @registry.handler("full", transactional=True)
    def full(data: object, /, context: object, *, job: Job, conn: object) -> tuple[object, ...]:
        return data, context, job, conn

    assert plain.invoke(1, job=JOB, conn="c", context="x") == (1,)
    assert full.invoke(1, job=JOB, conn="c", context="x") == (1, "x", JOB, "c")
    assert full.injected == ("context", "job", "conn")


def _no_parameter() -> None: ...
def _unknown(data: object, job: Job, retries: int, sesion: object = None) -> None: ...
def _keyword_only(*, data: object) -> None: ...
def _star(*args: object) -> None: ...
def _more(data: object, **more: object) -> None: ...
def _positional(data: object, job: Job, /) -> None: ...
def _wants_conn(data: object, conn: object) -> None: ...
def _generates(data: object) -> Iterator[int]:
    yield 1


async def _generates_async(data: object) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_no_parameter, "takes no parameter"),
        (_unknown, "`retries`, `sesion`"),
        (_keyword_only, "first parameter"),
        (_star, "first parameter"),
        (_more, "`more`"),
        (_positional, "`job`"),
        (_wants_conn, "transactional=True"),
        (_generates, "generator"),
        (_generates_async, "generator"),
    ],
)
def test_a_signature_that_nobody_could_call_is_refused(
    registry: Registry, function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(InvalidHandler, match=reason) as refused:
        registry.handler("t")(function)

    assert function.__name__ in str(refused.value)
    assert "test_handler.py" in str(refused.value)
    assert len(registry) == 0


def test_a_transaction_that_nobody_takes_is_refused(registry: Registry) -> None:
    with pytest.raises(InvalidHandler, match="transactional=True, or neither"):
        registry.handler("t", transactional=True)(lambda data: None)


@pytest.mark.parametrize(
    "options",
    [
        {"queue": ""},
        {"queue": "a,b"},
        {"max_attempts": 0},
        {"timeout": -1},
        {"backoff_base": 0},
        {"retry": RetryPolicy(), "backoff_cap": 5},
    ],
)
def test_options_out_of_range_are_refused(registry: Registry, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidHandler):
        registry.handler("t", **options)(lambda data: None)


def test_the_decorator_without_a_type_says_how_it_is_written(registry: Registry) -> None:
    with pytest.raises(InvalidHandler, match=r'@handler\("send_email"\)'):
        registry.handler(lambda data: None)  # type: ignore[arg-type]  # that is the fault


def test_a_type_registered_twice_names_both_functions(registry: Registry) -> None:
    @registry.handler("twin")
    def first(data: object) -> None: ...

    with pytest.raises(DuplicateHandler) as refused:

        @registry.handler("twin")
        def second(data: object) -> None: ...

    assert "first (" in refused.value.first
    assert "second (" in refused.value.second
    assert registry.get("twin") is first


def test_a_handler_gets_its_own_copy_of_the_data(registry: Registry) -> None:
    @registry.handler("t")
    def spoil(data: dict[str, list[str]]) -> None:
        data["to"].append("b")

    text = '{"to": ["a"]}'
    spoil.invoke(spoil.bind(text), job=JOB)

    assert spoil.bind(text) == {"to": ["a"]}
    assert spoil.bind(None) == {}


def test_a_model_is_checked_at_the_door_and_in_the_worker(registry: Registry) -> None:
    handler = registry.handler("bill", model=Invoice)(lambda invoice: invoice)

    assert handler.encode({"customer": 1, "total": Decimal("1.10")}) == b'{"customer":1,"total":"1.10"}'
    assert handler.encode(Invoice(customer=1, total=Decimal("1.10"))) == b'{"customer":1,"total":"1.10","due":null}'
    assert handler.bind('{"customer": 1, "total": "1.10"}') == Invoice(customer=1, total=Decimal("1.10"))
    wrong = {"customer": "x", "due": "never"}
    for check in (lambda: handler.encode(wrong), lambda: handler.bind(json.dumps(wrong))):
        with pytest.raises(MalformedData) as refused:
            check()
        assert [path for path, _ in refused.value.problems] == ["data.customer", "data.total", "data.due"]
        assert isinstance(refused.value, InvalidPayload)


def test_a_strict_model_reads_json_as_json(registry: Registry) -> None:
    handler = registry.handler("t", model=Strict)(lambda data: None)

    assert handler.bind('{"at": "2024-01-01T00:00:00Z"}').at.year == 2024  # type: ignore[attr-defined]  # a Strict
    with pytest.raises(MalformedData, match="before our time"):
        handler.bind('{"at": "1999-01-01T00:00:00Z"}')
    with pytest.raises(MalformedData, match=r"data\.more"):
        handler.encode({"at": "2024-01-01T00:00:00Z", "more": 1})


def test_a_model_may_be_any_type_that_pydantic_knows(registry: Registry) -> None:
    handler = registry.handler("t", model=list[int])(lambda data: None)

    assert handler.bind('["1", 2]') == [1, 2]
    with pytest.raises(MalformedData, match=r"data\[1\]"):
        handler.bind('[1, "x"]')


def test_long_integers_reach_a_model_exactly(registry: Registry) -> None:
    handler = registry.handler("t", model=list[int])(lambda data: None)

    assert handler.bind(f"[{2**64 + 1}]") == [2**64 + 1]


def test_data_that_nobody_can_read_is_malformed(registry: Registry) -> None:
    handler = registry.handler("t")(lambda data: None)

    with pytest.raises(MalformedData, match="data: it is nested too deep to be read"):
        handler.bind("[" * 100_000 + "]" * 100_000)


def test_a_python_policy_wishes_a_delay(registry: Registry) -> None:
    handler = registry.handler("t", retry=lambda attempt, error: timedelta(seconds=attempt) if attempt < 3 else None)(
        lambda data: None
    )

    assert handler.wished_delay(2, ValueError()) == 2.0
    assert handler.wished_delay(3, ValueError()) is None
    assert handler.policy == RetryPolicy()


@pytest.mark.parametrize("answer", [-1, float("nan"), "soon", 1e18])
def test_a_policy_that_answers_nonsense_is_passed_over(
    registry: Registry, answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    handler = registry.handler("t", retry=lambda attempt, error: answer)(lambda data: None)

    assert handler.wished_delay(1, ValueError()) is None
    assert "the retry policy of t failed" in caplog.text


class Recorder:
    """Stands where a queue would be."""

    def enqueue(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return (*args, kwargs)


def test_a_handler_enqueues_itself(registry: Registry) -> None:
    @registry.handler("send")
    def send(data: dict[str, str]) -> None: ...

    assert send.enqueue(Recorder(), to="a", queue="field") == (send, {"to": "a", "queue": "field"}, {})
    assert send.enqueue(Recorder(), ["any", "value"]) == (send, ["any", "value"], {})
    assert send.enqueue(Recorder()) == (send, {}, {})
    assert send.options(priority=3, queue="mail").enqueue(Recorder(), to="a") == (
        send,
        {"to": "a"},
        {"priority": 3, "queue": "mail"},
    )
    with pytest.raises(TypeError, match="not both"):
        send.enqueue(Recorder(), {"to": "a"}, to="b")


def test_a_ready_handler_moves_to_another_registry(registry: Registry) -> None:
    @registry.handler("t")
    def made(data: object) -> None: ...

    other = Registry()

    other.include(registry)
    other.add(made)

    assert list(other) == [made]
