"""In which order queues are shown: by name, or what is worst first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgq_core.domain.snapshot import QueueView


@dataclass(frozen=True, slots=True)
class QueueOrder:
    """Sorted by one column; names stand from A to Z, numbers from the largest down, unless it is turned round.

    By name they come already; only another order is worth a sign in the header.
    """

    column: str = "queue"
    is_turned: bool = False

    @property
    def is_usual(self) -> bool:
        return self == QueueOrder()

    @property
    def is_descending(self) -> bool:
        return (self.column != "queue") != self.is_turned

    def next(self, step: int) -> QueueOrder:
        """By the next column that can be sorted by.

        >>> QueueOrder().next(1).column, QueueOrder().next(-1).column
        ('wait', 'dead')
        """
        columns = list(_KEYS)
        return QueueOrder(columns[(columns.index(self.column) + step) % len(columns)])

    def turned(self) -> QueueOrder:
        return QueueOrder(self.column, not self.is_turned)

    def sort(self, queues: Sequence[QueueView]) -> list[QueueView]:
        """Equal ones by name, so that no row moves without a reason.

        >>> from pgq_core.domain.snapshot import Count
        >>> some = [QueueView("a", pending=Count(1)), QueueView("b", pending=Count(9)), QueueView("c")]
        >>> [queue.name for queue in QueueOrder("wait").sort(some)], [queue.name for queue in QueueOrder().sort(some)]
        (['b', 'a', 'c'], ['a', 'b', 'c'])
        """
        if self.is_usual:
            return list(queues)
        by_name = sorted(queues, key=lambda queue: queue.name)
        if self.column == "queue":
            return by_name[::-1]
        # The oldest job waits the longest: the smallest time is the largest age.
        return sorted(by_name, key=_KEYS[self.column], reverse=self.is_descending)

    @property
    def words(self) -> str:
        """
        >>> QueueOrder("fail").words, QueueOrder("queue", is_turned=True).words
        ('sorted by failures, most first', 'sorted by name, from Z to A')
        """
        if self.column == "queue":
            return f"sorted by name, {'from Z to A' if self.is_turned else 'from A to Z'}"
        return f"sorted by {_WORDS[self.column]}, {'most' if self.is_descending else 'least'} first"


def _age(queue: QueueView) -> float:
    return -queue.oldest_pending_at.timestamp() if queue.oldest_pending_at else float("-inf")


_KEYS: dict[str, Callable[[QueueView], float]] = {
    "queue": lambda _: 0.0,
    "wait": lambda queue: queue.pending.value,
    "oldest": _age,
    "run": lambda queue: queue.running,
    "out": lambda queue: queue.rate_out,
    "p95": lambda queue: queue.p95 or 0.0,
    "fail": lambda queue: queue.failure_share or 0.0,
    "dead": lambda queue: queue.dead.value,
}
_WORDS = {
    "wait": "waiting jobs",
    "oldest": "age of the oldest job",
    "run": "running jobs",
    "out": "finished jobs",
    "p95": "run time",
    "fail": "failures",
    "dead": "dead letters",
}
