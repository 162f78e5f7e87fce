"""Text from jobs can do nothing to a terminal and is never read as markup."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from pgq_tui.view_model import (
    ASCII,
    PLAIN,
    RawJson,
    cell,
    clean_text,
    compact_json,
    cut,
    json_text,
    one_line,
    pretty_json,
    safe_lines,
    traceback_text,
)
from pgq_tui.view_model.wrapping import wrap_text
from tests.tui.stage import HOSTILE

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=300)
FORBIDDEN = {"Cc", "Cs", "Cf", "Zl", "Zp"}


def _is_safe(text: str) -> bool:
    return all(unicodedata.category(character) not in FORBIDDEN for character in text)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:24])
def test_hostile_text_becomes_harmless_and_fits(text: str) -> None:
    for width in (0, 1, 2, 7, 40):
        line = one_line(text, width)

        assert _is_safe(line)
        assert cell_len(line) <= width


@given(ANY_TEXT, st.integers(min_value=0, max_value=60))
def test_any_text_becomes_harmless_and_fits(text: str, width: int) -> None:
    line = one_line(text, width)

    assert _is_safe(line)
    assert cell_len(line) <= width
    assert cell_len(line) == sum(cell_len(character) for character in line)


@given(ANY_TEXT)
def test_several_lines_keep_their_line_ends_and_nothing_else(text: str) -> None:
    cleaned = clean_text(text, multiline=True)

    assert _is_safe(cleaned.replace("\n", ""))


@given(ANY_TEXT)
def test_the_ascii_set_gives_ascii(text: str) -> None:
    assert one_line(text, 40, glyphs=ASCII).isascii()


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.isascii() and text.isprintable() and len(text) < 99])
def test_brackets_and_backslashes_are_kept_to_the_letter(text: str) -> None:
    assert clean_text(text) == text
    assert cell(text).plain == text
    assert not cell(text).spans


def test_controls_are_shown_by_signs() -> None:
    assert clean_text("\x1b[31m\x00\x07\x7f") == "␛[31m␀␇␡"
    assert clean_text("\x1b\x00", glyphs=ASCII) == "^[^@"


def test_words_that_run_backwards_are_written_out() -> None:
    assert clean_text("abc\u202efdp.exe") == "abc\\u202efdp.exe"


def test_a_letter_keeps_a_few_marks_of_ten_thousand() -> None:
    assert len(clean_text("e" + "\u0301" * 10_000)) == 4


def test_a_megabyte_costs_no_more_than_the_cell_it_fills() -> None:
    short, long = "é" * 1_000, "é" * 1_000_000

    def cost(text: str) -> float:
        start = time.process_time()
        for _ in range(50):
            one_line(text, 40)
        return time.process_time() - start

    cost(short)
    # The slice that is looked at has the same length; a factor of a thousand would show.
    assert cost(long) < cost(short) * 20 + 0.05


def test_a_wide_character_is_not_cut_in_half() -> None:
    assert cut("漢字漢字", 4) == "漢…"
    assert cell_len(cut("漢字漢字", 4)) == 3


def test_a_long_text_says_how_much_is_left_out() -> None:
    assert safe_lines("abcdef", limit=4)[-1] == "… 2 more characters"


def test_json_of_ten_thousand_levels_is_shown_and_cut() -> None:
    nested: object = 1
    for _ in range(10_000):
        nested = [nested]

    assert "cut" in pretty_json(nested)
    assert "cut" in pretty_json(RawJson("[" * 10_000 + "]" * 10_000))
    assert compact_json(nested, 12) == "[[[[[[[[[[[…"


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:24])
def test_hostile_text_in_json_and_tracebacks_is_harmless(text: str) -> None:
    frame = f'Traceback:\n  File "{text[:500]}", line 3, in {text[:500]}\n    {text}\n'
    shown = [
        json_text({text[:2_000]: [text, {"b": text}]}, PLAIN).plain,
        json_text(RawJson(text), PLAIN).plain,
        compact_json({"a": text}, 40),
        compact_json(RawJson(text), 40),
        traceback_text(frame, PLAIN).plain,
        traceback_text(text, PLAIN, folded=False).plain,
    ]

    for part in shown:
        assert _is_safe(part.replace("\n", ""))


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT, st.lists))
def test_any_json_value_is_shown(value: object) -> None:
    assert _is_safe(pretty_json(value).replace("\n", ""))
    assert cell_len(compact_json(value, 30)) <= 30


def test_numbers_and_words_are_exact() -> None:
    assert (
        pretty_json({"a": 2**60, "b": True, "c": None})
        == '{\n  "a": 1152921504606846976,\n  "b": true,\n  "c": null\n}'
    )


@given(ANY_TEXT, st.integers(min_value=1, max_value=30))
@example("ぁ ", 2)
def test_wrapped_lines_fit_and_lose_no_letter(text: str, width: int) -> None:
    cleaned = clean_text(text)
    lines = wrap_text(Text(cleaned), max(width, 2))

    assert all(cell_len(line.plain) <= max(width, 2) for line in lines)
    assert "".join(line.plain for line in lines).replace(" ", "") == cleaned.replace(" ", "")
