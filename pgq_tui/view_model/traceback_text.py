"""Python tracebacks for reading: the frames of the application stand out, those of libraries fold away."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from pgq_tui.view_model.figures import plural
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import safe_lines

_FRAME = re.compile(r'^\s*File "(?P<path>[^"]*)", line (?P<line>\d+)(?:, in (?P<name>.*))?$')
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3|^<(?:frozen|string)|[/\\]pgq_core[/\\]")
_LONGEST = 100_000
_FOLD_FROM = 2
_PATH_PARTS = 3


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a traceback: where it stands and the source lines printed below it."""

    path: str
    line: int
    name: str
    code: tuple[str, ...]

    @property
    def is_library(self) -> bool:
        """Installed code, the standard library or the queue itself: seldom where the fault is."""
        return _LIBRARY.search(self.path) is not None


@dataclass(frozen=True, slots=True)
class Note:
    """A line of the traceback that is no frame: headings, the error itself, or text in another language."""

    text: str


def parse_traceback(text: str) -> list[Frame | Note]:
    r"""Frames and other lines in order; what is no Python traceback comes back as notes.

    >>> parts = parse_traceback('Traceback:\n  File "/app/mail.py", line 8, in send\n    connect()\nKeyError: 1')
    >>> [type(part).__name__ for part in parts], parts[1].code, parts[1].is_library
    (['Note', 'Frame', 'Note'], ('connect()',), False)
    """
    parts: list[Frame | Note] = []
    for line in safe_lines(text, limit=_LONGEST):
        last = parts[-1] if parts else None
        if match := _FRAME.match(line):
            parts.append(Frame(match["path"], int(match["line"]), (match["name"] or "").strip(), ()))
        elif isinstance(last, Frame) and line.startswith("    "):
            parts[-1] = Frame(last.path, last.line, last.name, (*last.code, line.strip()))
        else:
            parts.append(Note(line))
    return parts


def traceback_text(text: str, palette: Palette, *, folded: bool = True, glyphs: Glyphs = UNICODE) -> Text:
    r"""The traceback laid out; runs of library frames become one line while `folded`.

    >>> from pgq_tui.view_model.palette import PLAIN
    >>> lib = '  File "/usr/lib/python3/smtplib.py", line 7, in connect\n'
    >>> own = '  File "/srv/app/mail.py", line 8, in send\n    go()\n'
    >>> print(traceback_text(own + lib * 3 + "OSError", PLAIN).plain)
    app/mail.py:8 in send
        go()
    … 3 library frames folded
    OSError
    """
    lines: list[Text] = []
    library: list[Frame] = []
    for part in parse_traceback(text):
        if isinstance(part, Frame) and part.is_library:
            library.append(part)
            continue
        lines += _library_lines(library, palette, folded=folded, glyphs=glyphs)
        library = []
        lines += _frame_lines(part, palette) if isinstance(part, Frame) else [_note_line(part, palette)]
    lines += _library_lines(library, palette, folded=folded, glyphs=glyphs)
    return Text("\n", end="").join(lines)


def _library_lines(frames: Sequence[Frame], palette: Palette, *, folded: bool, glyphs: Glyphs) -> list[Text]:
    if folded and len(frames) >= _FOLD_FROM:
        return [Text(f"{glyphs.ellipsis} {plural(len(frames), 'library frame')} folded", palette.style(Token.DIM))]
    dim = palette.style(Token.DIM)
    return [Text(f"{_short_path(frame.path)}:{frame.line} in {frame.name}", dim) for frame in frames]


def _frame_lines(frame: Frame, palette: Palette) -> list[Text]:
    head = Text()
    head.append(f"{_short_path(frame.path)}:{frame.line}", palette.style(Token.ACCENT))
    if frame.name:
        head.append(" in ", palette.style(Token.DIM)).append(frame.name, palette.style(Token.TEXT))
    return [head, *(Text(f"    {code}", palette.style(Token.TEXT)) for code in frame.code)]


def _note_line(note: Note, palette: Palette) -> Text:
    is_heading = note.text.startswith(("Traceback ", "During handling", "The above exception"))
    return Text(note.text, palette.style(Token.DIM if is_heading else Token.TEXT))


def _short_path(path: str) -> str:
    """The end of a path is what tells files apart."""
    parts = path.replace("\\", "/").split("/")
    if "site-packages" in parts:
        return "/".join(parts[parts.index("site-packages") + 1 :])
    return "/".join(parts[-_PATH_PARTS + 1 :]) if len(parts) > _PATH_PARTS else path
