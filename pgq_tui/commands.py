"""Everything an operator can do, once: bindings, help, key hints, palette and the `:` line are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from textual.binding import Binding

from pgq_tui.command_list import COMMANDS, GROUPS, SCREENS, Command
from pgq_tui.view_model.chrome import HelpRow, KeyHint

_BY_ID = {one.id: one for one in COMMANDS}


def command(command_id: str) -> Command:
    return _BY_ID[command_id]


def commands_on(screen: str) -> Iterator[Command]:
    return (one for one in COMMANDS if one.is_on(screen))


def bindings(screen: str = "") -> list[Binding]:
    """Key bindings of one screen, or those of the app; each has the id by which it can be remapped."""
    return [
        Binding(
            ",".join(one.keys),
            one.action,
            one.label or one.description,
            id=one.id,
            show=False,
            tooltip=one.describe(screen),
        )
        for one in COMMANDS
        if one.keys and (screen in one.screens if screen else not one.screens)
    ]


def key_hints(screen: str, usable: Iterable[str], labels: Mapping[str, str] | None = None) -> list[KeyHint]:
    """What the last line shows; commands that cannot be used now are left out. `labels`: better words for some."""
    allowed, better = set(usable), labels or {}
    return [
        KeyHint(one.shown, better.get(one.id, one.label), one.action, one.value)
        for one in commands_on(screen)
        if one.value and one.label and one.id in allowed
    ]


def help_rows(screen: str, usable: Iterable[str]) -> list[HelpRow]:
    """All of this screen's commands by group; one that cannot be used now can still be read."""
    allowed = set(usable)
    return [
        HelpRow(
            group,
            one.shown or f":{one.words[0]}",
            one.title,
            f"{one.describe(screen)}{'' if one.id in allowed else ' (not now)'}",
            one.action if one.id in allowed else "",
        )
        for group in GROUPS
        for one in commands_on(screen)
        if one.group == group
    ]


def find_by_word(word: str) -> Command | None:
    """The command with this name on the `:` line; a digit is a screen.

    >>> find_by_word("pause").id, find_by_word("5").id, find_by_word("nonsense")
    ('pause', 'screen_dead', None)
    """
    if word.isascii() and word.isdigit():
        return next((command(f"screen_{one.id}") for one in SCREENS if str(one.number) == word), None)
    return next((one for one in COMMANDS if word in one.words), None)


def known_words() -> Sequence[str]:
    """All names of the `:` line."""
    return sorted({word for one in COMMANDS for word in one.words})
