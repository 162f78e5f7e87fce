"""What a line typed after `:` means."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pgq_tui.command_list import Command
from pgq_tui.commands import find_by_word, known_words


class CommandLineError(ValueError):
    """A line that is no command; the message says what would be one."""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command and the words after it."""

    command: Command
    arguments: tuple[str, ...] = ()


def parse_command(line: str) -> CommandLine:
    """The command of a line; a digit is a screen, the first letters of one command are enough.

    >>> parse_command("pause emails smtp is down").arguments
    ('emails', 'smtp', 'is', 'down')
    >>> parse_command("5").command.id, parse_command("work").command.id
    ('screen_dead', 'screen_workers')
    """
    words = _words(line)
    if not words:
        raise CommandLineError("type a command, or esc")
    name, *arguments = words
    return CommandLine(_find(name.lower()), tuple(arguments))


def _find(word: str) -> Command:
    found = find_by_word(word)
    if found is not None:
        return found
    longer = [known for known in known_words() if known.startswith(word)]
    if len(longer) == 1 and (found := find_by_word(longer[0])) is not None:
        return found
    if longer:
        raise CommandLineError(f"{word!r} may be {', '.join(longer)}")
    raise CommandLineError(f"there is no command {word!r}: ? shows all")


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quote that is never closed is a quote
        return line.split()
