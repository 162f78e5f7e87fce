"""What a detail pane shows: facts as label and value, then sections of text; and how it is laid out in a width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.json_text import JSON, RawJson, json_text, pretty_json
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import one_line, safe_lines
from pgq_tui.view_model.traceback_text import traceback_text
from pgq_tui.view_model.wrapping import wrap_text

_WIDEST_LABEL = 14
_LABEL_GAP = 2
_LONGEST_VALUE = 4_000


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the head: `state   ✗ dead`."""

    label: str
    value: Text | str
    token: Token = Token.TEXT


@dataclass(frozen=True, slots=True)
class TextSection:
    """Plain text under a heading, such as an error message."""

    title: str
    text: str
    token: Token = Token.TEXT


@dataclass(frozen=True, slots=True)
class TracebackSection:
    """A traceback under a heading; its library frames can be folded."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class JsonSection:
    """A payload or result under a heading."""

    title: str
    value: JSON | RawJson


@dataclass(frozen=True, slots=True)
class StyledSection:
    """Lines the screen has laid out itself, such as a list of runs."""

    title: str
    lines: tuple[Text, ...]


Section = TextSection | TracebackSection | JsonSection | StyledSection


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything about one row; equal details are not painted again."""

    title: str
    facts: tuple[Fact, ...] = ()
    sections: tuple[Section, ...] = ()


def detail_lines(
    detail: Detail, width: int, palette: Palette, *, folded: bool = True, glyphs: Glyphs = UNICODE
) -> list[Text]:
    """The detail as lines of at most `width` cells.

    >>> from pgq_tui.view_model.palette import PLAIN
    >>> shown = Detail("88 120 30", (Fact("state", "dead"), Fact("worker", "w-02")), (TextSection("error", "boom"),))
    >>> print(*(line.plain for line in detail_lines(shown, 30, PLAIN)), sep="|")
    state   dead|worker  w-02||error|boom
    """
    lines = _fact_lines(detail.facts, width, palette, glyphs)
    for section in detail.sections:
        if lines:
            lines.append(Text())
        lines.append(Text(one_line(section.title, width, glyphs=glyphs), palette.style(Token.ACCENT)))
        for line in _section_text(section, palette, folded=folded, glyphs=glyphs):
            lines.extend(wrap_text(line, width))
    return lines


def detail_plain(detail: Detail, *, glyphs: Glyphs = UNICODE) -> str:
    """The whole detail unfolded and unwrapped, for the clipboard.

    >>> detail_plain(Detail("job 7", (Fact("state", "dead"),), (JsonSection("payload", {"a": [1]}),)))
    'job 7\\nstate: dead\\n\\npayload\\n{\\n  "a": [\\n    1\\n  ]\\n}'
    """
    lines = [detail.title, *(f"{fact.label}: {_plain(fact.value)}" for fact in detail.facts)]
    for section in detail.sections:
        lines += ["", section.title]
        if isinstance(section, JsonSection):
            lines.append(pretty_json(section.value, limit=1_000_000, glyphs=glyphs))
        elif isinstance(section, StyledSection):
            lines += [line.plain for line in section.lines]
        else:
            lines += safe_lines(section.text, limit=1_000_000, glyphs=glyphs)
    return "\n".join(lines)


def _fact_lines(facts: Sequence[Fact], width: int, palette: Palette, glyphs: Glyphs) -> list[Text]:
    """Labels in one column, values beside them; a long value goes on below itself."""
    labels = [one_line(fact.label, _WIDEST_LABEL, glyphs=glyphs) for fact in facts]
    indent = max((len(label) for label in labels), default=0) + _LABEL_GAP
    lines: list[Text] = []
    for fact, label in zip(facts, labels, strict=True):
        value = fact.value.copy() if isinstance(fact.value, Text) else _value_text(fact, palette, glyphs)
        for number, piece in enumerate(wrap_text(value, max(width - indent, 1))):
            head = (label if number == 0 else "").ljust(indent)
            lines.append(Text.assemble((head, palette.style(Token.DIM)), piece))
    return lines


def _value_text(fact: Fact, palette: Palette, glyphs: Glyphs) -> Text:
    return Text(one_line(str(fact.value), _LONGEST_VALUE, glyphs=glyphs), palette.style(fact.token))


def _section_text(section: Section, palette: Palette, *, folded: bool, glyphs: Glyphs) -> Sequence[Text]:
    match section:
        case TextSection(text=text, token=token):
            return [Text(line, palette.style(token)) for line in safe_lines(text, glyphs=glyphs)]
        case TracebackSection(text=text):
            return [traceback_text(text, palette, folded=folded, glyphs=glyphs)]
        case JsonSection(value=value):
            return [json_text(value, palette, glyphs=glyphs)]
        case StyledSection(lines=lines):
            return lines


def _plain(value: Text | str) -> str:
    return value.plain if isinstance(value, Text) else value
