"""Pictures of figures as SVG text: bars with their spread, and lines over time. No library, no font, no script."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from pgq_core.bench.figures import Spread, short

WIDTH = 880
_MARGIN = 24
_ROW = 26
_BAR = 16
_LABELS = 190
_VALUES = 150
_PLOT_HEIGHT = 200
_AXIS = 64
_TITLE = 30
_GAP = 28
_TICKS = 4
_COLOURS = ("#2f6fde", "#e0782f", "#3a9d5d", "#a04fc0", "#c0392b", "#6b7280")
_OTHERS = "#9aa5b1"
_STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1f2933}"
    ".title{font-weight:600;font-size:15px}.head{font-weight:700;font-size:19px}.quiet{fill:#616e7c;font-size:12px}"
    ".grid{stroke:#e4e7eb}.axis{stroke:#9aa5b1}.spread{stroke:#1f2933;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e7eb}.quiet{fill:#9aa5b1}.grid{stroke:#3e4c59}.spread{stroke:#e4e7eb}"
    ".paper{fill:#1f2933}}"
)


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    spread: Spread
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class BarPanel:
    """Horizontal bars from zero, with a thin line from the lowest to the highest round."""

    title: str
    bars: Sequence[Bar]

    @property
    def height(self) -> int:
        return _TITLE + _ROW * len(self.bars) + _GAP

    def draw(self, top: float) -> Iterator[str]:
        yield _text(_MARGIN, top + 16, self.title, "title")
        largest = max((bar.spread.high for bar in self.bars), default=0.0) or 1.0
        scale = (WIDTH - 2 * _MARGIN - _LABELS - _VALUES) / largest
        for number, bar in enumerate(self.bars):
            yield from self._bar(bar, top + _TITLE + number * _ROW, scale)

    @staticmethod
    def _bar(bar: Bar, top: float, scale: float) -> Iterator[str]:
        left, middle = _MARGIN + _LABELS, top + _BAR / 2
        width = bar.spread.median * scale
        colour = _COLOURS[0] if bar.is_ours else _OTHERS
        yield _text(left - 8, middle + 4, bar.label, anchor="end")
        yield f'<rect x="{left}" y="{top:.1f}" width="{width:.1f}" height="{_BAR}" rx="2" fill="{colour}"/>'
        if bar.spread.low != bar.spread.high:
            low, high = left + bar.spread.low * scale, left + bar.spread.high * scale
            yield _line(low, middle, high, middle, "spread")
        yield _text(left + max(bar.spread.high * scale, width) + 8, middle + 4, str(bar.spread), "quiet")


@dataclass(frozen=True, slots=True)
class Line:
    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class LinePanel:
    """Values over seconds, from zero."""

    title: str
    lines: Sequence[Line]

    @property
    def height(self) -> int:
        return _TITLE + _PLOT_HEIGHT + 46 + _GAP

    def draw(self, top: float) -> Iterator[str]:
        yield _text(_MARGIN, top + 16, self.title, "title")
        left, bottom = _MARGIN + _AXIS, top + _TITLE + _PLOT_HEIGHT
        right = WIDTH - _MARGIN
        highest = round_up(max((y for line in self.lines for _, y in line.points), default=0.0))
        latest = max((x for line in self.lines for x, _ in line.points), default=0.0) or 1.0
        for tick in range(_TICKS + 1):
            y = bottom - _PLOT_HEIGHT * tick / _TICKS
            yield _line(left, y, right, y, "grid")
            yield _text(left - 8, y + 4, short(highest * tick / _TICKS), "quiet", anchor="end")
            x = left + (right - left) * tick / _TICKS
            yield _text(x, bottom + 18, f"{short(latest * tick / _TICKS)} s", "quiet", anchor="middle")
        for number, line in enumerate(self.lines):
            colour = _COLOURS[number % len(_COLOURS)]
            points = " ".join(
                f"{left + (right - left) * x / latest:.1f},{bottom - _PLOT_HEIGHT * y / highest:.1f}"
                for x, y in line.points
            )
            yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
            x = left + 150 * number
            yield f'<rect x="{x}" y="{bottom + 30:.1f}" width="12" height="12" rx="2" fill="{colour}"/>'
            yield _text(x + 18, bottom + 40, line.label)


Panel = BarPanel | LinePanel


def picture(title: str, subtitle: str, panels: Sequence[Panel]) -> str:
    """One SVG document with the panels below each other."""
    parts, top = [], 70.0
    name = escape(title)
    for panel in panels:
        parts += list(panel.draw(top))
        top += panel.height
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:.0f}" role="img" aria-label="{name}">',
            f"<style>{_STYLE}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{top:.0f}" fill="#ffffff"/>',
            _text(_MARGIN, 34, title, "head"),
            _text(_MARGIN, 54, subtitle, "quiet"),
            *parts,
            "</svg>\n",
        )
    )


def round_up(number: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten: an end of an axis.

    >>> round_up(87_000), round_up(0.3), round_up(0)
    (100000.0, 0.5, 1.0)
    """
    if number <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(number))
    return next((step * power for step in (1, 2, 2.5, 5, 10) if step * power >= number), 10 * power)


def _text(x: float, y: float, text: str, kind: str = "", *, anchor: str = "start") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'
