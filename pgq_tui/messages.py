"""What travels through the console: pictures that have arrived, and wishes to be somewhere else."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from pgq_core.domain.snapshot import Overview


@dataclass
class OverviewArrived(Message):
    """A new picture of the whole."""

    overview: Overview

    def can_replace(self, message: Message) -> bool:
        """Only the newest picture matters when the screen is slower than the database."""
        return isinstance(message, OverviewArrived)


@dataclass
class GoTo(Message):
    """The operator wants to see another screen: a row of it, or its list narrowed to a filter line."""

    screen: str
    target: str = ""
    filter_line: str | None = None


@dataclass
class CommandTyped(Message):
    """A line of the command prompt, without the colon."""

    line: str
