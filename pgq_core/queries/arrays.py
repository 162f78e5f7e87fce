"""Array parameters as literals: the server casts them, and rendering 500 numbers costs a tenth of the driver's way.

Measured with psycopg 3.3: a list of 500 floats takes 0.45 ms as a list and 0.05 ms as a literal.
"""

from __future__ import annotations

from collections.abc import Sequence

Number = int | float | None


def numbers(values: Sequence[Number]) -> str:
    """
    >>> numbers([1, 2.5, None])
    '{1,2.5,NULL}'
    """
    return "{" + ",".join(["NULL" if value is None else repr(value) for value in values]) + "}"


def words(values: Sequence[str]) -> str:
    """For words of our own that need no quoting, as outcomes are.

    >>> words(["succeeded", "cancelled"])
    '{succeeded,cancelled}'
    """
    return "{" + ",".join(values) + "}"


def texts(values: Sequence[str | None]) -> str | list[str | None]:
    """For text of others: the driver quotes it, unless there is none at all.

    >>> texts([None, None]), texts([None, "a"])
    ('{NULL,NULL}', [None, 'a'])
    """
    if any(value is not None for value in values):
        return list(values)
    return "{" + ",".join(["NULL"] * len(values)) + "}"
