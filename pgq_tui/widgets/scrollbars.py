"""Scrollbars for terminals that only know ASCII: whole cells in colour, no eighths of blocks."""

from __future__ import annotations

from typing import ClassVar

from textual.scrollbar import ScrollBar, ScrollBarRender

from pgq_tui.view_model.glyphs import Glyphs


class PlainScrollBarRender(ScrollBarRender):
    """Draws with background colours alone."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "] * 8
    HORIZONTAL_BARS: ClassVar[list[str]] = [" "] * 8


def suit_scrollbars(glyphs: Glyphs) -> None:
    """Textual keeps the way of drawing on the class: one terminal, one way."""
    ScrollBar.renderer = PlainScrollBarRender if glyphs.is_ascii else ScrollBarRender
