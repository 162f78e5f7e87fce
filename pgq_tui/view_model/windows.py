"""The time windows of the dashboard, from a minute to a week."""

from __future__ import annotations

from datetime import timedelta

from pgq_core.domain.window import WINDOWS

DEFAULT_WINDOW = timedelta(minutes=15)


def window_label(window: timedelta) -> str:
    """How a window is written.

    >>> window_label(timedelta(minutes=15)), window_label(timedelta(minutes=90))
    ('15m', '90m')
    """
    known = {length: label for label, length in WINDOWS.items()}
    return known.get(window) or f"{window // timedelta(minutes=1)}m"


def next_window(window: timedelta, step: int) -> timedelta:
    """The window one step wider (1) or narrower (-1); the ends stay where they are.

    >>> window_label(next_window(timedelta(minutes=15), 1)), window_label(next_window(timedelta(minutes=1), -1))
    ('1h', '1m')
    """
    lengths = list(WINDOWS.values())
    nearest = min(range(len(lengths)), key=lambda index: abs(lengths[index] - window))
    return lengths[min(max(nearest + step, 0), len(lengths) - 1)]
