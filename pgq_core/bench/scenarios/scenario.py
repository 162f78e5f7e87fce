"""What a scenario is: variants of one situation, each measured round after round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pgq_core.bench.bench import Bench
from pgq_core.bench.result import Measurement


@dataclass(frozen=True, slots=True)
class Comparison:
    """`ratio` of every later variant: its `metric` over that of variant `base`, round by round."""

    metric: str
    ratio: str
    base: int = 0


class Scenario:
    """Subclasses say what they vary and measure one variant at a time, each in a database of its own."""

    rounds: ClassVar[int] = 3
    """Unless the options say otherwise."""
    workers: ClassVar[int] = 2
    comparison: ClassVar[Comparison | None] = None

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.options = bench.options

    @property
    def worker_count(self) -> int:
        return self.options.workers or self.workers

    @property
    def about(self) -> str:
        """What exactly is run, in one sentence."""
        raise NotImplementedError

    @property
    def variants(self) -> tuple[str, ...]:
        """In the order of the first round; every second round goes backwards, so that no variant is always the last."""
        raise NotImplementedError

    def measure(self, variant: str) -> Measurement:
        raise NotImplementedError

    def _crew(self) -> str:
        """The workers in words."""
        slots = f", concurrency {self.options.concurrency}" if self.options.concurrency else ""
        return f"{_counted(self.worker_count, 'worker')}{slots}, handler {self.options.work}"

    def _senders(self) -> str:
        return _counted(self.options.producers, "producer")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
