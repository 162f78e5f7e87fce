"""Which queue is asked first: each as often as its weight says, evenly spread."""

from __future__ import annotations

from collections.abc import Sequence

from pgq_core.worker.spec import ServedQueue


class Rotation:
    """Smooth weighted round robin.

    >>> rotation = Rotation([ServedQueue("a", 2), ServedQueue("b", 1)])
    >>> [rotation.order()[0] for _ in range(6)]
    ['a', 'b', 'a', 'a', 'b', 'a']
    """

    def __init__(self, queues: Sequence[ServedQueue]) -> None:
        self._queues = list(queues)
        self._credit = {queue.name: 0 for queue in queues}
        self._total = sum(queue.weight for queue in queues)

    def order(self) -> list[str]:
        """All queues; whose turn it is comes first, then the others by what they are owed."""
        if len(self._queues) == 1:
            return [self._queues[0].name]
        for queue in self._queues:
            self._credit[queue.name] += queue.weight
        ordered = sorted(self._credit, key=lambda name: -self._credit[name])
        self._credit[ordered[0]] -= self._total
        return ordered
