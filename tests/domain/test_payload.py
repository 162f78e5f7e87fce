"""The one encoder: what it accepts, what it refuses and where, and what becomes of results."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel

from pgq_core.domain.payload import (
    MAX_BYTES,
    MAX_DEPTH,
    Unreadable,
    decode,
    decode_any,
    encode,
    storable_result,
)
from pgq_core.errors import InvalidPayload


class Colour(StrEnum):
    RED = "red"


class Letter(Enum):
    A = "a"


class Size(IntEnum):
    BIG = 3


class Money(BaseModel):
    amount: Decimal
    currency: str = "EUR"


@dataclass
class Address:
    street: str
    _secret: int = 0


class Point(NamedTuple):
    x: int
    y: int


class Text(str):
    __slots__ = ()


class Number(float):
    """Its repr is no JSON, as that of numpy's float64."""

    def __repr__(self) -> str:
        return f"Number({float(self)})"


def name_of(value: object) -> str:
    """A short test id, for values whose repr is long, raises or is refused."""
    return ascii(value)[:30] if isinstance(value, (str, float)) else type(value).__name__


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


ACCEPTED: list[tuple[Any, str]] = [
    ({}, "{}"),
    ([], "[]"),
    ((), "[]"),
    (None, "null"),
    (True, "true"),
    ("", '""'),
    ({"": {"": []}}, '{"":{"":[]}}'),
    ([0, -1, 2**63, -(2**63) - 1, 2**64], "[0,-1,9223372036854775808,-9223372036854775809,18446744073709551616]"),
    ([0.1, 1.0, -0.0, 1e15, 5e-324, 1.5e-7], "[0.1,1.0,-0.0,1000000000000000.0,5e-324,1.5e-7]"),
    (1e23, "100000000000000000000000.0"),
    (-1.5e300, f"-15{'0' * 299}.0"),
    ({"total": Decimal("1.10"), "tiny": Decimal("1e-400")}, '{"total":"1.10","tiny":"1E-400"}'),
    (datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC), '"2024-02-29T12:00:00.000001Z"'),
    (datetime(2024, 2, 29, tzinfo=timezone(timedelta(hours=5, minutes=30))), '"2024-02-29T00:00:00+05:30"'),
    (datetime(2024, 2, 29), '"2024-02-29T00:00:00"'),  # noqa: DTZ001 - kept as it is
    (date(2024, 2, 29), '"2024-02-29"'),
    (time(23, 59, 1), '"23:59:01"'),
    (timedelta(minutes=1, milliseconds=500), '"PT60.500000S"'),
    (timedelta(days=-1), '"-PT86400S"'),
    (UUID("12345678123456781234567812345678"), '"12345678-1234-5678-1234-567812345678"'),
    ([Colour.RED, Size.BIG, Letter.A], '["red",3,"a"]'),
    ({Colour.RED: 1}, '{"red":1}'),
    (Money(amount=Decimal("9.90")), '{"amount":"9.90","currency":"EUR"}'),
    ([Address("here", 5)], '[{"street":"here","_secret":5}]'),
    (Point(1, 2), "[1,2]"),
    (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    ({Text("key"): Text("value")}, '{"key":"value"}'),
    ([Number(0.5), Number(1e30)], f"[0.5,1{'0' * 30}.0]"),
    ("\\u0000 written out", '"\\\\u0000 written out"'),
    ("null 1e5 é 😀 \x1f\x7f", '"null 1e5 é 😀 \\u001f\x7f"'),
    ({"é": "é"}, '{"é":"é"}'),
]


@pytest.mark.parametrize(("value", "text"), ACCEPTED, ids=name_of)
def test_accepted_values_have_one_text(value: object, text: str) -> None:
    assert encode(value).decode() == text


@pytest.mark.parametrize(("value", "text"), ACCEPTED, ids=name_of)
def test_the_exact_way_agrees_with_the_quick_one(value: object, text: str) -> None:
    # A null beside it sends the whole value down the exact way; 1e-7 may be spelt 1e-07 there.
    assert decode(encode([None, value])) == [None, decode(text)]


REFUSED: list[tuple[Any, str, str]] = [
    (float("nan"), "data", "NaN"),
    ({"a": [1, float("inf")]}, "data.a[1]", "Infinity"),
    ({"a": {"b c": Decimal("NaN")}}, 'data.a["b c"]', "NaN"),
    ({"a": "x\x00y"}, "data.a", "NUL"),
    ({"a": {"x\x00": 1}}, "data.a", "NUL"),
    ({"a": "\ud800"}, "data.a", "surrogate"),
    ({"\udfff": 1}, "data", "surrogate"),
    ({1: 2}, "data", "int"),
    ({"a": [{None: 2}]}, "data.a[0]", "NoneType"),
    ({(1, 2): 2}, "data", "tuple"),
    ([b"bytes"], "data[0]", "base64"),
    ({"ids": {1, 2}}, "data.ids", "set"),
    ([object()], "data[0]", "object"),
    ([Money], "data[0]", "no JSON value"),
    ([iter([])], "data[0]", "list_iterator"),
    ([1 + 2j], "data[0]", "complex"),
    ({"n": 10**4300}, "data.n", "4300 digits"),
    ({Letter.A: 1, "a": 2}, "data", "two keys"),
    (nested(MAX_DEPTH + 1), "data" + "[0]" * MAX_DEPTH, "deeper than 200"),
    (nested(900), "data" + "[0]" * MAX_DEPTH, "deeper than 200"),
]


@pytest.mark.parametrize(("value", "path", "reason"), REFUSED, ids=name_of)
def test_what_cannot_be_kept_is_refused_with_its_path(value: object, path: str, reason: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        encode(value)

    assert refused.value.path == path
    assert reason in refused.value.reason
    str(refused.value).encode("utf-8")


@pytest.mark.parametrize("depth", [1_000, 10_000, 100_000])
def test_depth_is_refused_without_a_recursion_error(depth: int) -> None:
    with pytest.raises(InvalidPayload, match="deeper than 200"):
        encode(nested(depth))


def test_nesting_up_to_the_limit_is_kept() -> None:
    assert json.loads(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)


def test_a_structure_that_contains_itself_is_refused() -> None:
    loop: dict[str, Any] = {"name": "loop"}
    loop["self"] = [loop]

    with pytest.raises(InvalidPayload, match=r"data\.self\[0\]: it contains itself"):
        encode(loop)


def test_the_same_object_twice_is_no_loop() -> None:
    shared = {"a": None}

    assert encode([shared, shared]) == b'[{"a":null},{"a":null}]'


def test_size_is_limited_and_the_limit_can_be_set() -> None:
    text = "x" * (MAX_BYTES - 2)

    assert len(encode(text)) == MAX_BYTES
    with pytest.raises(InvalidPayload, match="1048577 bytes"):
        encode(text + "x")
    assert len(encode(text + "x", max_bytes=MAX_BYTES + 1)) == MAX_BYTES + 1


def test_the_longest_integer_is_kept() -> None:
    assert decode(encode(10**4300 - 1)) == 10**4300 - 1


def test_decode_names_what_python_cannot_read() -> None:
    assert decode('{"n": 18446744073709551616}') == {"n": 2**64}
    with pytest.raises(InvalidPayload, match="nested too deep"):
        decode("[" * 100_000 + "]" * 100_000)
    with pytest.raises(InvalidPayload, match="cannot be read"):
        decode("9" * 5000)
    assert isinstance(decode_any(b"9" * 5000), Unreadable)


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no picture of me")

    __str__ = __repr__


class BrokenModel(BaseModel):
    @property
    def dict(self) -> Any:
        raise RuntimeError

    def model_dump(self, **kwargs: object) -> Any:
        raise KeyError(Broken())


@dataclass
class BrokenField:
    value: Any = 0

    def __getattribute__(self, name: str) -> Any:
        if name == "value":
            raise RuntimeError("gone")
        return super().__getattribute__(name)


def _generator() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "note"),
    [
        (b"bytes", "bytes are no JSON value"),
        ({1, 2}, "a set is no JSON value"),
        ({"deep": [Broken()]}, r"a Broken is no JSON value \(at result\.deep\[0\]\)"),
        ({Broken(): 1}, "a key is of type Broken"),
        (_generator(), "a generator is no JSON value"),
        (nested(1_000), "deeper than 200"),
        ("x" * 2_000_000, "2000002 bytes"),
        (10**5000, "4300 digits"),
        (BrokenField(), "RuntimeError"),
        (BrokenModel(), "KeyError"),
    ],
    ids=name_of,
)
def test_a_result_that_is_no_json_leaves_a_note(value: object, note: str) -> None:
    text, said = storable_result(value)

    assert text is None
    assert said is not None
    assert said.startswith("result not storable: ")
    with pytest.raises(AssertionError, match=note):
        raise AssertionError(said)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ({"ok": True}, '{"ok":true}'),
        (["a\x00b", "\ud800"], '["a␀b","�"]'),
        ({"x\x00": 1}, '{"x␀":1}'),
        ([float("nan"), float("inf"), float("-inf")], '["NaN","Infinity","-Infinity"]'),
        (Decimal("sNaN"), '"sNaN"'),
    ],
    ids=name_of,
)
def test_a_result_is_stored_with_visible_signs_for_what_cannot_be_kept(value: object, text: str | None) -> None:
    assert storable_result(value) == (text, None)
