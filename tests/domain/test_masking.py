"""Telling keys are hidden, in values and in text, and nothing else is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgq_core.domain.masking import MASKED, Mask

TELLING = [
    "password",
    "PASSWORD",
    "db_password",
    "userPassword",
    "passwords",
    "token",
    "accessToken",
    "access-token",
    "accesstoken",
    "x-api-key",
    "apiKey",
    "APIKey",
    "stripe_secret_v2",
    "Authorization",
    "set-cookie",
    "private_key",
    "aws.access_key.id",
]
HARMLESS = ["secretary", "tokyo", "passenger", "keyboard", "compass", "user", "monkey", "", "recipient", "cookbook"]


@pytest.mark.parametrize("key", TELLING)
def test_telling_keys_are_hidden(key: str) -> None:
    assert Mask().value({key: "s-1"}) == {key: MASKED}


@pytest.mark.parametrize("key", HARMLESS)
def test_harmless_keys_are_not(key: str) -> None:
    assert Mask().value({key: "s-1"}) == {key: "s-1"}


def test_whatever_lies_under_a_telling_key_is_hidden_however_deep() -> None:
    value = {"a": [{"credentials": {"user": "u", "more": [1, 2]}}, {"b": {"pwd": None}}]}

    assert Mask().value(value) == {"a": [{"credentials": MASKED}, {"b": {"pwd": MASKED}}]}


def test_keys_can_be_chosen() -> None:
    mask = Mask(["iban", "Date of birth"])

    assert mask.value({"iban": "DE1", "date_of_birth": "x", "password": "y"}) == {
        "iban": MASKED,
        "date_of_birth": MASKED,
        "password": "y",
    }
    assert Mask([]).value({"password": "y"}) == {"password": "y"}
    assert Mask([]).text('{"password": "y"}') == '{"password": "y"}'


keys = st.sampled_from(["a", "password", "api_key", 'quo"te', "back\\slash", "ж", "token:"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@given(values)
def test_text_is_masked_as_values_are(value: Any) -> None:
    mask = Mask()

    assert json.loads(mask.text(json.dumps(value))) == mask.value(value)
    assert json.loads(mask.text(json.dumps(value, ensure_ascii=False, indent=1))) == mask.value(value)


@given(values, st.integers(min_value=0, max_value=200))
def test_text_that_was_cut_shows_no_more_than_the_whole(value: Any, length: int) -> None:
    secret = "s3cr3t-s3cr3t"
    text = json.dumps({"a": value, "password": [secret, {"x": secret}], "b": value, "token": secret})

    assert secret not in Mask().text(text[:length])
    assert secret[:6] not in Mask().text(text[:length])
