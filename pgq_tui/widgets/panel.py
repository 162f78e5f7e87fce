"""A thin frame whose upper and lower lines carry text at both ends."""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.content import Content
from textual.widget import Widget

from pgq_tui.theme import glyphs_of, palette_of
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.safe_text import cut, one_line

_CORNERS = 6
"""Cells of a border line that Textual keeps: at each end a corner, a dash and a blank."""
_LEAST_RULE = 3

Label = Text | str


class Panel(Widget):
    """A widget with a frame; what stands in the frame is text, never markup.

    Textual has one title per line and reads a `str` as markup. Here the title is put together when the line is
    painted, so that it always has the width and the border colour of that moment.
    """

    _top: tuple[Text, tuple[Text, ...]] = (Text(), ())
    _bottom: tuple[Text, tuple[Text, ...]] = (Text(), ())

    def set_title(self, left: Label, *rights: Label) -> None:
        """Text in the upper line; of the right-hand ones the first that has room is shown."""
        top = self._as_texts(left, rights)
        if top != self._top:
            self._top = top
            self.styles.border_title_align = "left" if top[0] else "right"
            self.refresh()

    def set_footer(self, left: Label, *rights: Label) -> None:
        """Text in the lower line."""
        bottom = self._as_texts(left, rights)
        if bottom != self._bottom:
            self._bottom = bottom
            self.styles.border_subtitle_align = "left" if bottom[0] else "right"
            self.refresh()

    @property
    def palette(self) -> Palette:
        """The styles of the theme that is on."""
        return palette_of(self.app)

    @property
    def glyphs(self) -> Glyphs:
        """The signs of this terminal."""
        return glyphs_of(self.app)

    @property
    def _border_title(self) -> Content | None:
        return self._border_line(*self._top)

    @_border_title.setter
    def _border_title(self, _: Content | None) -> None:
        """Textual clears the title of a new widget; ours is computed."""

    @property
    def _border_subtitle(self) -> Content | None:
        return self._border_line(*self._bottom)

    @_border_subtitle.setter
    def _border_subtitle(self, _: Content | None) -> None:
        """As above."""

    def _as_texts(self, left: Label, rights: tuple[Label, ...]) -> tuple[Text, tuple[Text, ...]]:
        return self._as_text(left, Token.TEXT), tuple(self._as_text(right, Token.DIM) for right in rights if right)

    def _as_text(self, label: Label, token: Token) -> Text:
        if isinstance(label, Text):
            return Text().append_text(label)
        return Text().append(one_line(label, 200, glyphs=self.glyphs), self.palette.style(token))

    def _border_line(self, left: Text, rights: tuple[Text, ...]) -> Content | None:
        width = self.outer_size.width - _CORNERS
        if width <= 0 or not (left or rights):
            return None
        room = width - (left.cell_len + _LEAST_RULE if left else 0)
        right = next((text for text in rights if text.cell_len <= room), Text())
        line = left.copy()
        if line.cell_len > width:
            line = Text().append(cut(line.plain, width, glyphs=self.glyphs), self.palette.style(Token.TEXT))
        if left and right:
            line.append_text(self._rule(width - line.cell_len - right.cell_len))
        return Content.from_rich_text(line.append_text(right))

    def _rule(self, width: int) -> Text:
        """The piece of border between the texts, in the colour the border has now."""
        kind, colour = self.styles.border_top
        dash = "-" if kind == "ascii" else "─"
        return Text().append(f" {dash * (width - 2)} ", Style(color=colour.rich_color, bold=False))
