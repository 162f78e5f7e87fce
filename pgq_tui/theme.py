"""The looks of the console: two themes of Okabe-Ito colours, one without colours, and their styles as a palette."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rich.color import Color as RichColor
from rich.style import Style
from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import Theme

from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token

DARK = Theme(
    name="pgq-dark",
    primary="#8ea6ff",
    secondary="#7b8cc4",
    accent="#8ea6ff",
    warning="#e69f00",
    error="#e8703a",
    success="#2bb58a",
    foreground="#d4dae6",
    background="#0e1116",
    surface="#12161d",
    panel="#1a202a",
    boost="#ffffff08",
    dark=True,
    variables={
        "border": "#8ea6ff",
        "border-blurred": "#2c3542",
        "block-cursor-background": "#2a3450",
        "block-cursor-foreground": "#f2f5fb",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#1d2431",
        "block-cursor-blurred-foreground": "#d4dae6",
        "block-hover-background": "#ffffff0a",
        "scrollbar": "#2c3542",
        "scrollbar-hover": "#43506a",
        "scrollbar-active": "#8ea6ff",
        "scrollbar-background": "#12161d",
        "scrollbar-background-hover": "#12161d",
        "scrollbar-background-active": "#12161d",
        "scrollbar-corner-color": "#12161d",
        "input-selection-background": "#8ea6ff40",
        "button-focus-text-style": "bold",
        "footer-key-foreground": "#8ea6ff",
        "pgq-ok": "#22b286",
        "pgq-running": "#56b4e9",
        "pgq-waiting": "#aab4c5",
        "pgq-scheduled": "#cc79a7",
        "pgq-retry": "#e69f00",
        "pgq-failed": "#e8703a",
        "pgq-dead": "#e8703a",
        "pgq-paused": "#999999",
        "pgq-link": "#4f9fd8",
        "pgq-text": "#d4dae6",
        "pgq-dim": "#7d899c",
        "pgq-faint": "#37414f",
        "pgq-accent": "#8ea6ff",
        "pgq-protected": "#ff6b57",
        "pgq-key": "#8ea6ff",
    },
)

LIGHT = Theme(
    name="pgq-light",
    primary="#3d55c4",
    secondary="#5a6bb0",
    accent="#3d55c4",
    warning="#8f6000",
    error="#b34700",
    success="#00754f",
    foreground="#1e2530",
    background="#f3f4f7",
    surface="#fbfbfd",
    panel="#e8eaf0",
    boost="#00000008",
    dark=False,
    variables={
        "border": "#3d55c4",
        "border-blurred": "#c9cfdb",
        "block-cursor-background": "#d5dcf7",
        "block-cursor-foreground": "#10151d",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#e6e9f2",
        "block-cursor-blurred-foreground": "#1e2530",
        "scrollbar": "#c9cfdb",
        "scrollbar-hover": "#a9b2c4",
        "scrollbar-active": "#3d55c4",
        "scrollbar-background": "#fbfbfd",
        "scrollbar-background-hover": "#fbfbfd",
        "scrollbar-background-active": "#fbfbfd",
        "scrollbar-corner-color": "#fbfbfd",
        "button-focus-text-style": "bold",
        "footer-key-foreground": "#3d55c4",
        "pgq-ok": "#00754f",
        "pgq-running": "#0067a0",
        "pgq-waiting": "#55606f",
        "pgq-scheduled": "#98416f",
        "pgq-retry": "#8f6000",
        "pgq-failed": "#b34700",
        "pgq-dead": "#b34700",
        "pgq-paused": "#666666",
        "pgq-link": "#006fad",
        "pgq-text": "#1e2530",
        "pgq-dim": "#667182",
        "pgq-faint": "#d3d8e2",
        "pgq-accent": "#3d55c4",
        "pgq-protected": "#c42b1c",
        "pgq-key": "#3d55c4",
    },
)

ANSI = Theme(
    name="pgq-ansi",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    accent="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables={
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "border": "ansi_cyan",
        "border-blurred": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-text-style": "reverse",
        "block-cursor-blurred-background": "ansi_default",
        "block-cursor-blurred-foreground": "ansi_default",
        "block-cursor-blurred-text-style": "bold underline",
        "button-focus-text-style": "bold reverse",
        "pgq-ok": "ansi_green",
        "pgq-running": "ansi_cyan",
        "pgq-waiting": "ansi_default",
        "pgq-scheduled": "ansi_magenta",
        "pgq-retry": "ansi_yellow",
        "pgq-failed": "ansi_red",
        "pgq-dead": "ansi_bright_red",
        "pgq-paused": "ansi_bright_black",
        "pgq-link": "ansi_blue",
        "pgq-text": "ansi_default",
        "pgq-dim": "ansi_bright_black",
        "pgq-faint": "ansi_bright_black",
        "pgq-accent": "ansi_cyan",
        "pgq-protected": "ansi_bright_red",
        "pgq-key": "ansi_cyan",
    },
)
"""The 16 colours of the terminal itself; the one theme that NO_COLOR can strip of all colour."""

THEMES = (DARK, LIGHT, ANSI)
_BOLD = frozenset({Token.DEAD, Token.PROTECTED, Token.KEY})


def install_themes(app: App[Any], choice: str | None = None) -> None:
    """Register the themes and switch to `choice`, or to the one that suits the terminal."""
    for theme in THEMES:
        app.register_theme(theme)
    app.theme = choice if choice in app.available_themes else default_theme(os.environ)


def default_theme(environ: Mapping[str, str]) -> str:
    """Dark, unless NO_COLOR asks for none or the terminal has few.

    >>> default_theme({}), default_theme({"NO_COLOR": "1"}), default_theme({"TERM": "linux"})
    ('pgq-dark', 'pgq-ansi', 'pgq-ansi')
    """
    if "NO_COLOR" in environ or environ.get("TERM") in {"linux", "vt100", "vt220", "ansi"}:
        return ANSI.name
    return DARK.name


def ansi_colour(environ: Mapping[str, str]) -> bool | None:
    """What `App(ansi_color=...)` needs: Textual decides when an app is made whether NO_COLOR leaves grey or nothing.

    >>> ansi_colour({"NO_COLOR": "1"}), ansi_colour({"TERM": "xterm-256color"})
    (True, None)
    """
    return True if default_theme(environ) == ANSI.name else None


def token_variables(theme: Theme) -> dict[str, str]:
    """The colour of each token in a theme; one of another house gets those of ours that is as dark.

    The app returns these from `get_theme_variable_defaults`, so that `$pgq-ok` is known to every stylesheet.
    """
    house = DARK if theme.dark else LIGHT
    return {token.value: theme.variables.get(token.value, house.variables[token.value]) for token in Token}


def palette_of(app: App[Any]) -> Palette:
    """The styles of the theme that is on, for widgets that draw their own lines."""
    theme = app.current_theme
    return _palette(tuple(token_variables(theme).values()), theme.dark, not app.no_color)


def token_style(app: App[Any], token: str) -> Style:
    """The style of one token in the theme that is on; an unknown token has no colour."""
    return palette_of(app).style(token)


@lru_cache(maxsize=8)
def _palette(colours: tuple[str, ...], is_dark: bool, has_colour: bool) -> Palette:
    styles = {
        token.value: Style.from_color(_rich_colour(colour)) + Style(bold=token in _BOLD or None)
        for token, colour in zip(Token, colours, strict=True)
    }
    return Palette(styles, is_dark=is_dark, has_colour=has_colour)


def _rich_colour(colour: str) -> RichColor | None:
    try:
        return Color.parse(colour).rich_color
    except ColorParseError:
        return None


def glyphs_of(app: App[Any]) -> Glyphs:
    """The signs the app has chosen for its terminal, Unicode when it has not chosen."""
    chosen = getattr(app, "glyphs", UNICODE)
    return chosen if isinstance(chosen, Glyphs) else UNICODE
