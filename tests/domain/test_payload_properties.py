"""For any value: what the encoder accepts is read back equal, with the same types."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pgq_core.domain.payload import decode, encode, storable_result
from pgq_core.errors import InvalidPayload

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=30)
ANYTHING = st.recursive(
    LEAVES | st.floats() | st.text(st.characters()) | st.binary() | st.sets(st.integers()) | st.decimals(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()) | st.integers(), inner),
    max_leaves=20,
)
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # the machine may be busy


def same(one: Any, other: Any) -> bool:
    """Equal, and of equal types at every place: 1 is not 1.0 and not True."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@UNHURRIED
@given(VALUES)
@example([1e16, 1e22, 1e23, 1.7976931348623157e308, 5e-324, 123456789012345680000.0])
def test_what_is_accepted_is_read_back_equal(value: Any) -> None:
    assert same(decode(encode(value)), value)


@UNHURRIED
@given(st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: abs(x) >= 1e15))
def test_large_floats_have_no_exponent(value: float) -> None:
    text = encode([value])

    assert b"e" not in text
    assert math.isclose(decode(text)[0], value, rel_tol=0)


@UNHURRIED
@given(ANYTHING)
def test_whatever_is_given_is_encoded_or_refused_and_a_result_never_raises(value: Any) -> None:
    text, note = storable_result(value)
    assert note is None or text is None
    try:
        encoded = encode(value)
    except InvalidPayload as refused:
        str(refused).encode()
    else:
        decode(encoded)
