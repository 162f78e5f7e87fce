"""Ranges of a job's settings: each value has one meaning or is refused by the name of its field."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from functools import partial
from typing import Any

import pytest

from pgq_core.domain.enqueue import (
    MAX_KEY,
    checked_delay,
    checked_id,
    checked_key,
    checked_lease,
    checked_limit,
    checked_max_attempts,
    checked_name,
    checked_not_before,
    checked_priority,
    checked_start,
    checked_timeout,
    checked_trace_context,
    checked_wait,
)
from pgq_core.errors import InvalidJob

NAMES: list[Any] = [
    *("", " a", "a ", "a,b", "a\x00b", "a\nb", "a\x1b[31m", "a\u2028b", "\ud800", "x" * 201),
    None,
    5,
    b"bytes",
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_that_nobody_could_type_are_refused(name: Any) -> None:
    with pytest.raises(InvalidJob) as refused:
        checked_name("queue", name)

    assert refused.value.field == "queue"


@pytest.mark.parametrize("name", ["default", "a/b", "emails 2", "größe", "😀", "x" * 200, "a.b:c-d_e"])
def test_names_with_signs_are_kept(name: str) -> None:
    assert checked_name("queue", name) == name


REFUSED: list[tuple[Callable[[Any], Any], str, list[Any]]] = [
    (checked_priority, "priority", [-32769, 32768, 2**31, -(2**63), 1.0, "1", True, None, 10**5000]),
    (checked_max_attempts, "max_attempts", [0, -1, 10**9, 1.5, "3", True, None]),
    (
        checked_delay,
        "delay",
        [-1, -0.001, float("nan"), float("inf"), 1e18, "5", True, timedelta(days=-1), timedelta.max, 10**400],
    ),
    (checked_timeout, "timeout", [-1, float("inf"), timedelta(days=367), "30"]),
    (checked_wait, "timeout", [-1, float("nan"), float("inf"), 1e18, timedelta(days=-1), "5", True, None]),
    (checked_id, "id", [1.0, "1", True, None, float("nan"), 10**5000]),
    (checked_lease, "lease", [0, -1, timedelta(0), None]),
    (checked_limit, "limit", [0, -1, 10_001, 1.5, None]),
    (checked_key, "idempotency_key", ["", "x" * (MAX_KEY + 1), "a\x00", "\udfff", 5, b"k"]),
    (
        checked_not_before,
        "not_before",
        [
            datetime(2030, 1, 1),  # noqa: DTZ001 - that is the fault
            datetime.max.replace(tzinfo=UTC),
            datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
            "2024-02-30",
            "infinity",
            1e9,
        ],
    ),
    (checked_trace_context, "trace_context", [{"a": "\x00"}, "x" * 9000, {1: 2}]),
]


@pytest.mark.parametrize(
    ("check", "field", "value"),
    [(check, field, value) for check, field, values in REFUSED for value in values],
    ids=lambda value: type(value).__name__,
)
def test_values_out_of_range_are_refused_by_field(check: Callable[[Any], Any], field: str, value: Any) -> None:
    with pytest.raises(InvalidJob) as refused:
        check(value)

    assert refused.value.field == field
    assert len(str(refused.value)) < 200


def test_values_at_the_edges_are_kept() -> None:
    assert [checked_priority(number) for number in (-32768, 0, 32767)] == [-32768, 0, 32767]
    assert [checked_max_attempts(number) for number in (1, 1_000_000)] == [1, 1_000_000]
    assert checked_delay(0) == checked_delay(timedelta(0)) == timedelta(0)
    assert checked_delay(0.5) == timedelta(milliseconds=500)
    assert checked_timeout(0) == timedelta(0)
    assert checked_key("😀" * MAX_KEY) == "😀" * MAX_KEY


class Name(StrEnum):
    ONE = "only of an enum"


class Number(IntEnum):
    TWO = 2


class Text(str):
    """Not even shown as the text it is."""

    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


class Span(timedelta):
    pass


class Moment(datetime):
    pass


@pytest.mark.parametrize(
    ("check", "given", "plain"),
    [
        (partial(checked_name, "queue"), Name.ONE, "only of an enum"),
        (partial(checked_name, "type"), Text("only of a text"), "only of a text"),
        (checked_key, Name.ONE, "only of an enum"),
        (checked_key, Text("key"), "key"),
        (checked_priority, Number.TWO, 2),
        (checked_max_attempts, Number.TWO, 2),
        (checked_limit, Number.TWO, 2),
        (checked_id, Number.TWO, 2),
        (checked_delay, Number.TWO, timedelta(seconds=2)),
        (checked_delay, Span(days=2, seconds=3, microseconds=4), timedelta(days=2, seconds=3, microseconds=4)),
        (checked_timeout, Span(seconds=3), timedelta(seconds=3)),
        (checked_wait, Span(seconds=3), timedelta(seconds=3)),
        (checked_not_before, Moment(2100, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)),
        (
            checked_not_before,
            Moment(1970, 1, 1, tzinfo=timezone(timedelta(hours=1))),
            datetime(1969, 12, 31, 23, tzinfo=UTC),
        ),
        (checked_trace_context, {Name.ONE: Number.TWO}, '{"only of an enum":2}'),
        (checked_trace_context, Name.ONE, '"only of an enum"'),
    ],
)
def test_a_value_of_a_derived_type_becomes_a_plain_one(check: Callable[[Any], Any], given: Any, plain: Any) -> None:
    """The short way over the wire knows the plain types alone, and the same value is plain wherever it is shown."""
    checked = check(given)

    assert checked == plain
    assert type(checked) is type(plain)
    assert type(check(plain)) is type(plain)  # not what a cache has of the other one


@pytest.mark.parametrize(
    "moment",
    [
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
        datetime.min.replace(tzinfo=timezone(-timedelta(hours=14))),
        datetime(1, 1, 1, 23, 59, 59, tzinfo=UTC),
    ],
)
def test_a_time_before_all_that_the_table_takes_is_its_earliest(moment: datetime) -> None:
    assert checked_not_before(moment) == datetime(1, 1, 2, tzinfo=UTC)


def test_a_time_is_kept_in_utc() -> None:
    moment = datetime(2024, 3, 31, 2, 30, tzinfo=timezone(timedelta(hours=2)))

    assert checked_not_before(moment) == moment
    assert checked_not_before(moment).tzinfo is UTC


def test_a_delay_and_a_time_are_too_much() -> None:
    with pytest.raises(InvalidJob, match="not both"):
        checked_start(5, datetime(2030, 1, 1, tzinfo=UTC))
