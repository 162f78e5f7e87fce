"""Giving a terminal back: what a killed full-screen program leaves on is switched off again."""

from __future__ import annotations

import contextlib
import subprocess
import sys

# Mouse reporting in all its forms, focus reporting, bracketed paste, key protocols, the alternate screen, a hidden
# cursor, scroll regions and colours; line wrap comes back on.
SANE = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?2004l\x1b[?2048l"
    "\x1b[<u\x1b[>4;0m\x1b[r\x1b[?1049l\x1b[?25h\x1b[?7h\x1b[0m"
)


def reset() -> None:
    """Writes to the terminal this process was started in, and runs `stty sane` on it."""
    stream = sys.stdout if sys.stdout.isatty() else sys.stderr
    stream.write(SANE)
    stream.flush()
    with contextlib.suppress(OSError):
        subprocess.run(["stty", "sane"], check=False, stdin=sys.stdin)  # noqa: S607 - found where the system has it
