"""What the operator did in this session: what became of it, and which acts can be taken back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime

_KEPT = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an act ended: the words for it, and the operation it was written down as, when it can be undone."""

    words: str
    undo_operation: int | None = None
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One act: when, what, and its result in a sentence."""

    at: datetime
    act: str
    result: str
    is_failure: bool = False


@dataclass(frozen=True, slots=True)
class Undoable:
    """An act that can be taken back."""

    act: str
    operation_id: int


class Journal:
    """Acts in their order, the newest last, and a stack of those that can be taken back."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=_KEPT)
        self._undoable: list[Undoable] = []

    def write(self, at: datetime, act: str, outcome: Outcome) -> None:
        self.entries.append(Entry(at, act, outcome.words, outcome.is_failure))
        if outcome.undo_operation is not None:
            self._undoable.append(Undoable(act, outcome.undo_operation))

    @property
    def last_undoable(self) -> Undoable | None:
        return self._undoable[-1] if self._undoable else None

    def forget_undoable(self, undoable: Undoable) -> None:
        """It was taken back, or cannot be any more."""
        if undoable in self._undoable:
            self._undoable.remove(undoable)
