"""Pictures of all screens, for the documentation: always the same, made from a shop that stands still."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual.widgets import Input

from pgq_tui.app import PgqApp
from pgq_tui.command_list import SCREENS
from pgq_tui.pictures.shop_backend import ShopBackend
from pgq_tui.screens.session import Session
from pgq_tui.view_model.glyphs import UNICODE

SIZES = ((80, 24), (160, 45))
STILL = 100.0
"""What the clock of a console that stands still shows, in seconds."""
_SETTLE = 0.2
_PIXELS_PER_COLUMN = 8
_COLOURS = 256
# Pictures are drawn where fonts differ; cells come out equally wide only in a font that is there.
_FONTS = "'Fira Code', 'DejaVu Sans Mono', 'Menlo', 'Consolas', monospace"


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: its name, the keys that lead to it from the dashboard."""

    name: str
    keys: tuple[str, ...]


SHOTS = (
    *(Shot("dashboard" if screen.id == "dash" else screen.id, (str(screen.number),)) for screen in SCREENS),
    Shot("dead-kinds", ("5", "V")),
    Shot("replay", ("5", "space", "space", "R")),
    Shot("help", ("5", "question_mark")),
)


def take_pictures(directory: Path, *, only: str | None = None) -> list[Path]:
    """An SVG of each shot in each size, and a PNG beside it where cairosvg is installed."""
    directory.mkdir(parents=True, exist_ok=True)
    shots = [shot for shot in SHOTS if only in {None, shot.name}]
    paths: list[Path] = []
    for size in SIZES:
        for name, svg in asyncio.run(draw_all(shots, size)):
            path = directory / f"{name}-{size[0]}x{size[1]}.svg"
            path.write_text(svg, encoding="utf-8")
            paths += [path, *_png_beside(path, svg, size[0])]
    return paths


async def draw_all(shots: Sequence[Shot], size: tuple[int, int]) -> list[tuple[str, str]]:
    """The pictures as SVG; each is taken in a console of its own, so that none depends on the one before."""
    return [(shot.name, await draw(shot, size)) for shot in shots]


async def draw(shot: Shot, size: tuple[int, int]) -> str:
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    session = Session(ShopBackend(), monotonic=lambda: STILL)
    app = PgqApp(session, theme="pgq-dark", glyphs=UNICODE)
    app.animation_level = "none"
    async with app.run_test(size=size) as pilot:
        await pilot.pause(_SETTLE)
        for key in shot.keys:
            await pilot.press(key)
            await pilot.pause(_SETTLE)
        for field in app.screen.query(Input):
            field.cursor_blink = False  # half of the time it would not be there
        await pilot.pause(_SETTLE)
        return portable(app.export_screenshot(title="pgq-tui"))


def portable(svg: str) -> str:
    """The same picture with fonts that are at hand everywhere, and without the random names of its parts."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}", "", svg)
    svg = re.sub(r"font-family:\s*[^;]+;", f"font-family: {_FONTS};", svg)
    return re.sub(r"terminal-\d+", "terminal-pgq", svg)


def _png_beside(path: Path, svg: str, columns: int) -> list[Path]:
    try:
        import cairosvg
    except (ImportError, OSError):  # the package, or the C library below it
        return []
    picture = path.with_suffix(".png")
    plain = svg.replace("'Fira Code', ", "")
    cairosvg.svg2png(bytestring=plain.encode(), write_to=str(picture), output_width=columns * _PIXELS_PER_COLUMN + 40)
    _fewer_colours(picture)
    return [picture]


def _fewer_colours(picture: Path) -> None:
    """A terminal has few colours: a palette makes the file a third as large, and looks the same."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(picture) as image:
        small = image.convert("RGB").quantize(colors=_COLOURS, kmeans=_COLOURS)
    small.save(picture, optimize=True)
