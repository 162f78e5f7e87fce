"""What is said after copying: how much, and by which way, since terminals answer nothing."""

from __future__ import annotations

from pgq_tui.view_model.figures import format_bytes
from pgq_tui.widgets.text_dialog import LONGEST_COPY


def copied_words(words: str) -> str:
    """A sentence about what was copied.

    >>> copied_words("abc"), copied_words("x" * 300_000)
    ('copied 3 B (OSC 52)', 'copied 98 kB of 293 kB (OSC 52)')
    """
    copied = format_bytes(min(len(words), LONGEST_COPY))
    rest = f" of {format_bytes(len(words))}" if len(words) > LONGEST_COPY else ""
    return f"copied {copied}{rest} (OSC 52)"
