"""Foreign text at the one boundary to PostgreSQL."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pgq_core.domain.text import describe, storable


@settings(deadline=None)
@given(st.text(st.characters()), st.integers(1, 50))
def test_any_text_becomes_storable(text: str, limit: int) -> None:
    stored = storable(text, limit=limit)

    assert "\x00" not in stored
    stored.encode("utf-8")
    assert len(stored) <= limit + 60


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")))
def test_storable_text_stays_as_it_is(text: str) -> None:
    assert storable(text) == text


def test_what_cannot_be_stored_becomes_visible() -> None:
    assert storable("a\x00b\ud83dc") == "a␀b�c"


def test_overlong_text_says_how_much_was_cut() -> None:
    assert storable("x" * 1_000_000, limit=10) == "xxxxxxxxxx … [999990 characters cut]"


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_is_described_whatever_its_own_code_does() -> None:
    assert describe(ValueError("bad\x00value")) == "ValueError: bad␀value"
    assert describe(ValueError()) == "ValueError"
    assert describe(Mute()) == "Mute: <its message cannot be shown: RuntimeError>"
