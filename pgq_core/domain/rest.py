"""How long a look rests that was dear: such looks take no more than a fiftieth of the time, however long each one is.

Looks walk over index entries of rows that are gone. While somebody holds a snapshot open nothing removes these, and a
look that is quick as a rule takes seconds.
"""

from __future__ import annotations

from typing import Final

SHARE: Final = 0.02
"""Of the time that dear looks may take."""
QUICK: Final = 0.1
"""Seconds: what takes no longer is not worth a rest."""


def rest_after(seconds: float) -> float:
    """Seconds to rest after a look that took so many.

    >>> rest_after(0.05), rest_after(2.0)
    (0.0, 100.0)
    """
    return seconds / SHARE if seconds > QUICK else 0.0
