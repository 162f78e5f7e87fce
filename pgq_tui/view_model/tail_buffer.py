"""The records of a tail: the newest so many, those of them that pass the filter, and where the search finds them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from pgq_tui.view_model.tail_record import RuleRecord, TailRecord


class Change(NamedTuple):
    """What a batch did to the shown records: so many left at the start, so many came at the end."""

    gone: int
    added: int


class TailBuffer:
    """Records in the order they came; indexes count the shown ones, the oldest is 0."""

    def __init__(self, kept: int) -> None:
        self._limit = max(kept, 1)
        self._records: deque[TailRecord] = deque(maxlen=self._limit)
        self._shown: list[TailRecord] = []
        self._levels: frozenset[str] | None = None
        self.filter = ""
        self.needle = ""
        self.hits = 0
        """How many shown records the search finds."""

    def __len__(self) -> int:
        return len(self._shown)

    def __getitem__(self, index: int) -> TailRecord:
        return self._shown[index]

    @property
    def kept(self) -> int:
        """How many records there are, shown or not."""
        return len(self._records)

    @property
    def is_filtered(self) -> bool:
        """Whether records may be hidden."""
        return bool(self.filter) or self._levels is not None

    def extend(self, records: Iterable[TailRecord]) -> Change:
        """Add a batch; the oldest records beyond the limit go."""
        new = list(records)[-self._limit :]
        gone = self._forget(len(self._records) + len(new) - self._limit)
        self._records.extend(new)
        passing = [record for record in new if self._passes(record)]
        self._shown.extend(passing)
        self.hits += self._count_hits(passing)
        return Change(gone, len(passing))

    def clear(self) -> None:
        """Forget all records; filter and search stay."""
        self._records.clear()
        self._shown.clear()
        self.hits = 0

    def set_filter(self, text: str) -> None:
        """Show only records that contain the text, whatever the case."""
        self.filter = text
        self._filter_again()

    def set_levels(self, levels: Collection[str] | None) -> None:
        """Show only records of these levels; None shows all."""
        self._levels = None if levels is None else frozenset(levels)
        self._filter_again()

    def set_needle(self, text: str) -> None:
        """Search for a text without hiding the rest."""
        self.needle = text
        self.hits = self._count_hits(self._shown)

    def hits_among(self, first: int) -> int:
        """How many of the `first` shown records the search finds."""
        return self.hits - self._count_hits(self._shown[first:])

    def next_hit(self, start: int, direction: int, first: int) -> int | None:
        """The first hit from `start` on, in one direction and round the end, among the `first` shown records."""
        count = min(first, len(self._shown))
        if not self.needle or not count:
            return None
        needle = self.needle.casefold()
        places = ((start + direction * step) % count for step in range(count))
        return next((place for place in places if needle in self._shown[place].search_text.casefold()), None)

    def index_of(self, held: TailRecord) -> int | None:
        """Where a record is shown; for one the filter hides, the first shown one after it, else the last."""
        index = 0
        for record in self._records:
            if record is held:
                return min(index, len(self._shown) - 1) if self._shown else None
            index += index < len(self._shown) and self._shown[index] is record
        return None

    def count_passing(self, last: int) -> int:
        """How many of the `last` newest records are shown."""
        newest = islice(reversed(self._records), last)
        return sum(map(self._passes, newest))

    def _filter_again(self) -> None:
        self._shown = [record for record in self._records if self._passes(record)]
        self.hits = self._count_hits(self._shown)

    def _passes(self, record: TailRecord) -> bool:
        if isinstance(record, RuleRecord):
            return True
        if self._levels is not None and record.level not in self._levels:
            return False
        return not self.filter or self.filter.casefold() in record.search_text.casefold()

    def _count_hits(self, records: Sequence[TailRecord]) -> int:
        needle = self.needle.casefold()
        return sum(needle in record.search_text.casefold() for record in records) if needle else 0

    def _forget(self, excess: int) -> int:
        """Take the oldest records out of the shown ones; how many lines that were."""
        gone = 0
        for record in islice(self._records, max(excess, 0)):
            if gone < len(self._shown) and self._shown[gone] is record:
                gone += 1
        self.hits -= self._count_hits(self._shown[:gone])
        del self._shown[:gone]
        return gone
