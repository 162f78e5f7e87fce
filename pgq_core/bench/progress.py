"""How far a benchmark is: a bar on a terminal, plain lines elsewhere; always on stderr."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class BenchProgress(Protocol):
    def expect(self, steps: int) -> None:
        """How many steps there will be."""

    def say(self, text: str) -> None:
        """What is done now, as part of the current step."""

    def step(self, text: str) -> None:
        """The next step begins."""


class LineProgress:
    """One line per step and per part of it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._steps = 0
        self._number = 0

    def expect(self, steps: int) -> None:
        self._steps = steps

    def step(self, text: str) -> None:
        self._number += 1
        self._console.print(f"[{self._number}/{self._steps}] {text}", markup=False, highlight=False)

    def say(self, text: str) -> None:
        self._console.print(f"  {text}", markup=False, highlight=False)


class BarProgress:
    """A bar that advances when a step is over."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID = bar.add_task("starting", total=None)
        self._step = ""
        self._number = 0

    def expect(self, steps: int) -> None:
        self._bar.update(self._task, total=steps)

    def step(self, text: str) -> None:
        self._step = text
        self._bar.update(self._task, completed=self._number, description=text)
        self._number += 1

    def say(self, text: str) -> None:
        self._bar.update(self._task, description=f"{self._step}: {text}")


@contextlib.contextmanager
def bench_progress(console: Console) -> Iterator[BenchProgress]:
    if not console.is_terminal:
        yield LineProgress(console)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        yield BarProgress(bar)
