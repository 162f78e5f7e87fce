"""A bar of one line made of parts: what has no room is left out, nothing wraps, each part can be clicked."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual.events import Click
from textual.strip import Strip
from textual.widget import Widget

from pgq_tui.theme import glyphs_of, palette_of
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.palette import Palette
from pgq_tui.view_model.safe_text import cut
from pgq_tui.widgets.segments import text_segments


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar; the lowest `rank` is kept longest, `click` is given back when it is clicked."""

    text: Text
    rank: int = 0
    click: str = ""


class Bar(Widget):
    """The common ground of the bars: subclasses say which parts stand at the left and at the right."""

    DEFAULT_CSS = """
    Bar { height: 1; width: 1fr; background: $background; color: $foreground; }
    """

    GAP = 2
    """Blank cells between two parts."""

    @property
    def palette(self) -> Palette:
        """The styles of the theme that is on."""
        return palette_of(self.app)

    @property
    def glyphs(self) -> Glyphs:
        """The signs of this terminal."""
        return glyphs_of(self.app)

    def left_parts(self) -> list[Part]:
        """What stands at the left."""
        return []

    def right_parts(self) -> list[Part]:
        """What stands at the right."""
        return []

    def part_clicked(self, click: str) -> None:
        """Somebody clicked on a part that has a `click`."""

    def render_line(self, y: int) -> Strip:
        """The parts that have room."""
        width = self.size.width
        base = self.rich_style
        if y or width <= 0:
            return Strip.blank(max(width, 0), base)
        text, _ = self._laid_out(width)
        return Strip(text_segments(text, self.app.console)).apply_style(base).crop_extend(0, width, base)

    def on_click(self, event: Click) -> None:
        """Find the part under the mouse."""
        offset = event.get_content_offset(self)
        if offset is None:
            return
        _, places = self._laid_out(self.size.width)
        for start, end, click in places:
            if start <= offset.x < end and click:
                self.part_clicked(click)

    def _laid_out(self, width: int) -> tuple[Text, list[tuple[int, int, str]]]:
        """The line, and from where to where each clickable part reaches."""
        left, right = self._fitting(width)
        text = Text(" ")
        places: list[tuple[int, int, str]] = []
        for part in left:
            self._append(text, part, places, is_first=part is left[0])
        tail = Text()
        tail_places: list[tuple[int, int, str]] = []
        for part in right:
            self._append(tail, part, tail_places, is_first=part is right[0])
        if right:
            text.append(" " * max(width - text.cell_len - tail.cell_len - 1, 0))
            places += [(start + text.cell_len, end + text.cell_len, click) for start, end, click in tail_places]
            text.append_text(tail)
        if text.cell_len > width:
            text = Text(cut(text.plain, width, glyphs=self.glyphs))
        return text, places

    def _append(self, text: Text, part: Part, places: list[tuple[int, int, str]], *, is_first: bool) -> None:
        text.append("" if is_first else " " * self.GAP)
        start = text.cell_len
        text.append_text(part.text)
        places.append((start, text.cell_len, part.click))

    def _fitting(self, width: int) -> tuple[list[Part], list[Part]]:
        """The parts that have room, the most important ones first served; their order stays."""
        left, right = self.left_parts(), self.right_parts()
        room = width - 2
        kept: set[int] = set()
        for part in sorted([*left, *right], key=lambda part: part.rank):
            needed = part.text.cell_len + (self.GAP if kept else 0)
            if needed <= room or not kept:
                kept.add(id(part))
                room -= needed
        return [part for part in left if id(part) in kept], [part for part in right if id(part) in kept]
