"""JSON laid out for reading: any depth, any size, from raw text or from values, and never an exception."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from rich.text import Text

from pgq_tui.view_model.figures import format_bytes
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import clean_text, one_line

JSON: TypeAlias = object
"""Whatever a JSON column gave: a decoded value."""
Kind = Literal["open", "close", "comma", "colon", "key", "string", "number", "word", "other"]

SHOWN_CHARACTERS = 16_000
"""How much of a payload is laid out; more than a reader looks at, and little enough for one repaint."""
_DEEPEST_INDENT = 24
_EXACT_BITS = 10_000  # Python refuses to write out integers of more than 4,300 digits.
_INDENT = "  "
_READ_AHEAD = 2  # Raw text may hold blanks that are laid out anew.

_TOKENS = re.compile(
    r"""(?P<open>[\[{])|(?P<close>[\]}])|(?P<comma>,)|(?P<colon>:)
    |(?P<string>"(?:[^"\\]|\\.)*(?:"|$))
    |(?P<number>-?\d[\d.eE+-]*)
    |(?P<word>true|false|null)
    |(?P<other>[^\s\[\]{},:"]+)""",
    re.VERBOSE | re.DOTALL,
)
_STYLES: dict[Kind, Token] = {
    "key": Token.RUNNING,
    "string": Token.TEXT,
    "number": Token.SCHEDULED,
    "word": Token.RETRY,
    "other": Token.TEXT,
}


class JsonToken(NamedTuple):
    """One piece of JSON: what it is and how it is written."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class RawJson:
    """JSON as the text the database gave, not decoded: depth and size cannot hurt."""

    text: str


@dataclass(slots=True)
class _Level:
    """One container on the way down: its remaining items, and whether one was written."""

    items: Iterator[tuple[str | None, JSON]]
    close: str
    has_items: bool = False


def pretty_json(value: JSON | RawJson, *, limit: int = SHOWN_CHARACTERS, glyphs: Glyphs = UNICODE) -> str:
    r"""The value indented by two, cut after `limit` characters with a note.

    >>> print(pretty_json({"to": "a@example.org", "tags": ["vip", None], "none": {}}))
    {
      "to": "a@example.org",
      "tags": [
        "vip",
        null
      ],
      "none": {}
    }
    >>> print(pretty_json(RawJson('{"a":1,"b":"x\\u0000y"}')))
    {
      "a": 1,
      "b": "x\u0000y"
    }
    >>> print(pretty_json(RawJson("[1" + "0" * 50 + "]"), limit=10))
    [
      100000…
    … cut: 53 B in all
    """
    return json_text(value, Palette(), limit=limit, glyphs=glyphs).plain


def json_text(
    value: JSON | RawJson, palette: Palette, *, limit: int = SHOWN_CHARACTERS, glyphs: Glyphs = UNICODE
) -> Text:
    """The same as `pretty_json`, with keys, numbers and words in their colours."""
    text = Text(no_wrap=True, end="")
    room = limit
    for piece, token in _layout(json_tokens(value, limit)):
        safe = clean_text(piece[:room], multiline=token is None, glyphs=glyphs)
        text.append(safe, palette.style(token) if token else palette.style(Token.DIM))
        room -= len(piece)
        if room < 0:
            return text.append(_cut_note(value, glyphs), palette.style(Token.DIM))
    if isinstance(value, RawJson) and len(value.text) > limit * _READ_AHEAD:
        text.append(_cut_note(value, glyphs), palette.style(Token.DIM))
    return text


def _cut_note(value: JSON | RawJson, glyphs: Glyphs) -> str:
    size = f": {format_bytes(len(value.text))} in all" if isinstance(value, RawJson) else ""
    return f"{glyphs.ellipsis}\n{glyphs.ellipsis} cut{size}"


def compact_json(value: JSON | RawJson, width: int, *, glyphs: Glyphs = UNICODE) -> str:
    """The value on one line of at most `width` cells, for a table.

    >>> compact_json({"user_id": 9912, "template": "receipt"}, 60)
    '{"user_id": 9912, "template": "receipt"}'
    >>> compact_json({"user_id": 9912, "template": "receipt"}, 20)
    '{"user_id": 9912, "…'
    """
    pieces: list[str] = []
    length = 0
    for token in json_tokens(value, width):
        pieces.append(token.text + (" " if token.kind in {"comma", "colon"} else ""))
        length += len(pieces[-1])
        if length > width:
            break
    return one_line("".join(pieces), width, glyphs=glyphs)


def json_tokens(value: JSON | RawJson, longest: int = SHOWN_CHARACTERS) -> Iterator[JsonToken]:
    """The pieces in order, without recursion; a string is read no further than `longest` needs.

    >>> [token.text for token in json_tokens({"a": [1, True]})]
    ['{', '"a"', ':', '[', '1', ',', 'true', ']', '}']
    """
    if isinstance(value, RawJson):
        return _tokens_of_text(value.text[: longest * _READ_AHEAD])
    return _tokens_of_value(value, longest)


def _tokens_of_text(text: str) -> Iterator[JsonToken]:
    pending: JsonToken | None = None
    for match in _TOKENS.finditer(text):
        kind: Kind = match.lastgroup  # type: ignore[assignment]  # the groups are named after the kinds
        if pending is not None:
            yield JsonToken("key", pending.text) if kind == "colon" else pending
        pending = JsonToken(kind, match.group())
    if pending is not None:
        yield pending


def _tokens_of_value(value: JSON, longest: int) -> Iterator[JsonToken]:
    levels: list[_Level] = [_Level(iter([(None, value)]), "")]
    while levels:
        level = levels[-1]
        item = next(level.items, None)
        if item is None:
            levels.pop()
            if level.close:
                yield JsonToken("close", level.close)
            continue
        if level.has_items:
            yield JsonToken("comma", ",")
        level.has_items = True
        key, child = item
        if key is not None:
            yield JsonToken("key", _quoted(key, longest))
            yield JsonToken("colon", ":")
        if isinstance(child, Mapping):
            yield JsonToken("open", "{")
            levels.append(_Level(((str(name), part) for name, part in child.items()), "}"))
        elif isinstance(child, Sequence) and not isinstance(child, str | bytes | bytearray):
            yield JsonToken("open", "[")
            levels.append(_Level(((None, part) for part in child), "]"))
        else:
            yield _scalar(child, longest)


def _scalar(value: JSON, longest: int) -> JsonToken:
    if value is None or isinstance(value, bool):
        return JsonToken("word", "null" if value is None else str(value).lower())
    if isinstance(value, int) and value.bit_length() > _EXACT_BITS:
        return JsonToken("other", f"<integer of {value.bit_length()} bits>")
    if isinstance(value, int | float):
        return JsonToken("number", repr(value))
    return JsonToken("string", _quoted(str(value), longest))


def _quoted(text: str, longest: int) -> str:
    quoted = json.dumps(text[:longest], ensure_ascii=False)
    return quoted if len(text) <= longest else quoted[:-1]


def _layout(tokens: Iterator[JsonToken]) -> Iterator[tuple[str, Token | None]]:
    """Pieces to write with the colour of each; None for what only gives the shape."""
    depth = 0
    previous: Kind | None = None
    for kind, text in tokens:
        if kind == "close":
            depth = max(0, depth - 1)
        starts_line = previous not in {"open", None} if kind == "close" else previous in {"open", "comma"}
        if starts_line:
            yield _line_start(depth), None
        elif previous == "colon":
            yield " ", None
        yield text, _STYLES.get(kind)
        if kind == "open":
            depth += 1
        previous = kind


def _line_start(depth: int) -> str:
    return "\n" + _INDENT * min(depth, _DEEPEST_INDENT)
