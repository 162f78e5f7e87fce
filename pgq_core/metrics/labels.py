"""Which queues are named in labels: a bounded number, so that invented names cannot fill a monitoring system."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_QUEUES: Final = 100
REST: Final = "other"
"""The label of all queues beyond the cap."""


class Labels:
    """Names are taken up in the order in which they are offered, and keep their place."""

    def __init__(self, cap: int = MOST_QUEUES) -> None:
        self.cap = cap
        self._names: dict[str, None] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def take_up(self, names: Iterable[str]) -> None:
        for name in names:
            if len(self._names) >= self.cap:
                return
            self._names.setdefault(name)

    def of(self, name: str | None) -> str:
        """
        >>> labels = Labels(cap=1)
        >>> labels.take_up(["mail", "bills"])
        >>> labels.of("mail"), labels.of("bills"), labels.of(None)
        ('mail', 'other', 'other')
        """
        return name if name is not None and name in self._names else REST
