"""Counts, rates, sizes and shares as short text of steady width."""

from __future__ import annotations

import math

MISSING = "–"

_EXACT_BELOW = 10_000
_KILO = 1_000
_KIBI = 1_024
_SMALL_RATE = 0.1
_NO_DECIMALS_FROM = 99.95
_ALMOST_NONE = 0.0005
_ALMOST_ALL = 0.9995
_TWO_DIGITS = 9.95


def format_count(value: int | None, *, cap: int | None = None) -> str:
    """A number of things: exact below 10,000, three digits above; `cap` is where the counting stopped.

    >>> [format_count(n) for n in (0, 1204, 12_345, 999_999, 4_200_000, None)]
    ['0', '1,204', '12.3k', '1.0M', '4.2M', '–']
    >>> format_count(10_000, cap=10_000), format_count(9_999, cap=10_000), format_count(500, cap=500)
    ('10k+', '9,999', '500+')
    """
    if value is None:
        return MISSING
    if cap is not None and value >= cap:
        return f"{cap // _KILO}k+" if cap >= _KILO else f"{cap}+"
    return f"{value:,}" if abs(value) < _EXACT_BELOW else _scaled(value)


def format_exact(value: int | None) -> str:
    """Every digit, for sentences that an operator decides by.

    >>> format_exact(1_234_567), format_exact(None)
    ('1,234,567', '–')
    """
    return MISSING if value is None else f"{value:,}"


def format_rate(per_second: float | None, *, unit: str = "/s") -> str:
    """Things per second; a small rate is never shown as none.

    >>> [format_rate(r) for r in (12.44, 0.03, 0, 640, 12_345.0, None)]
    ['12.4/s', '0.03/s', '0.0/s', '640/s', '12.3k/s', '–']
    >>> format_rate(9.1, unit=""), format_rate(0.001, unit="")
    ('9.1', '<0.01')
    """
    if per_second is None or not math.isfinite(per_second):
        return MISSING
    return _rate_digits(per_second) + unit


def _rate_digits(rate: float) -> str:
    if 0 < rate < _SMALL_RATE:
        return f"{rate:.2f}" if rate >= _SMALL_RATE / 20 else "<0.01"
    if abs(rate) < _NO_DECIMALS_FROM:
        return f"{rate:.1f}"
    return f"{rate:,.0f}" if abs(rate) < _EXACT_BELOW - 0.5 else _scaled(rate)


def format_bytes(value: float | None, *, short: bool = False) -> str:
    """A size in powers of 1024; `short` is the form for narrow columns.

    >>> [format_bytes(n) for n in (0, 1_000, 1_536, 912 * 1024**2, 18 * 1024**3, None)]
    ['0 B', '1000 B', '1.5 kB', '912 MB', '18 GB', '–']
    >>> format_bytes(340 * 1024**2, short=True)
    '340M'
    """
    if value is None:
        return MISSING
    size, units = float(value), ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(size) >= _KIBI and len(units) > 1:
        size, units = size / _KIBI, units[1:]
    has_decimal = units[0] != "B" and abs(size) < _TWO_DIGITS and round(size, 1) != int(size)
    digits = f"{size:.1f}" if has_decimal else f"{size:.0f}"
    return f"{digits}{units[0][0]}" if short else f"{digits} {units[0]}"


def cut_size(text: str, size: int) -> str:
    """What stands behind the name of a text that was cut from so many bytes; nothing for a whole one.

    >>> cut_size("ab", 40_000), cut_size("äö", 4), cut_size("\\ud800", 3)
    (' 39 kB', '', '')
    """
    return f" {format_bytes(size)}" if size > len(text.encode("utf-8", "surrogatepass")) else ""


def format_percent(share: float | None, *, unit: str = "%") -> str:
    """A share of one; a few are never shown as none, almost all never as all.

    >>> [format_percent(s) for s in (0.41, 0, 1, 0.0001, 0.9999, None)]
    ['41.0%', '0.0%', '100%', '<0.1%', '>99.9%', '–']
    """
    if share is None or not math.isfinite(share):
        return MISSING
    if 0 < share < _ALMOST_NONE:
        return f"<0.1{unit}"
    if _ALMOST_ALL <= share < 1:
        return f">99.9{unit}"
    return f"{share * 100:.0f}{unit}" if share >= 1 else f"{share * 100:.1f}{unit}"


def format_change(value: float | None, *, unit: str = "/m") -> str:
    """Growth with its sign; standing still is said, not hidden.

    >>> format_change(37), format_change(-4.2), format_change(0), format_change(None)
    ('+37/m', '-4/m', '0/m', '–')
    """
    if value is None or not math.isfinite(value):
        return MISSING
    rounded = round(value)
    return f"{rounded:+,}{unit}" if rounded else f"0{unit}"


def format_id(value: int | None, *, grouped: bool = False) -> str:
    """An id in full, never shortened: somebody will type it; `grouped` for reading aloud.

    >>> format_id(8_812_041), format_id(8_812_041, grouped=True), format_id(2**60)
    ('8812041', '8 812 041', '1152921504606846976')
    """
    if value is None:
        return MISSING
    return f"{value:,}".replace(",", " ") if grouped else str(value)


def format_load(running: int, slots: int) -> str:
    """Busy slots of all slots; jobs that a worker has claimed before a slot is free are counted apart.

    >>> format_load(2, 8), format_load(11, 8), format_load(3, 0)
    ('2/8', '8/8+3', '3/0')
    """
    ready = running - slots
    if slots <= 0 or ready <= 0:
        return f"{format_count(running)}/{format_count(slots)}"
    return f"{format_count(slots)}/{format_count(slots)}+{format_count(ready)}"


def load_words(running: int, slots: int) -> str:
    """The same in words.

    >>> load_words(2, 8), load_words(11, 8)
    ('2 of 8 slots', '8 of 8 slots, 3 more claimed and ready to start')
    """
    ready = running - slots
    if slots <= 0 or ready <= 0:
        return f"{running} of {slots} slots"
    return f"{slots} of {slots} slots, {ready} more claimed and ready to start"


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """The count with its noun.

    >>> plural(1, "job"), plural(812, "job"), plural(2, "entry", "entries")
    ('1 job', '812 jobs', '2 entries')
    """
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def _scaled(value: float) -> str:
    """One decimal and a letter; rounding up to a thousand moves on to the next letter."""
    size = float(value)
    for letter in ("k", "M", "G", "T", "P"):
        size /= _KILO
        if abs(size) < _KILO - 0.05:
            return f"{size:.1f}{letter}"
    return f"{size / _KILO:,.1f}E"
