"""A verb of the queue is a flow: a generator that yields what is to be run and is sent the rows.

So each verb is written once. The asynchronous and the plain queue differ only in how they run a step.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pgq_core.queries import Statement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """A statement whose failure the flow can survive: in a caller's transaction it runs inside a savepoint."""

    statement: Statement[Any]


@dataclass(frozen=True, slots=True)
class Quick:
    """A statement that may go the short way, on a connection of ours that can (see `queries.wire`)."""

    statement: Statement[Any]


@dataclass(frozen=True, slots=True)
class Held:
    """Whether the statements run in a transaction of the caller's, which keeps its locks when one is repeated."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to do for this long. No connection is held."""

    seconds: float


Step: TypeAlias = Statement[Any] | Attempt | Quick | Held | Pause
Flow: TypeAlias = Generator[Step, Any, T]
"""Is sent the list of rows after a statement (its driver's error is thrown in), a truth for Held, None for Pause."""
