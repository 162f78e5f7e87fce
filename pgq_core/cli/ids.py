"""Ids on a command line: one by one, or `-` for one per line on stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pgq_core.cli.failures import UsageError

_LARGEST = 2**63 - 1


def parsed_ids(given: Sequence[str]) -> list[int]:
    words = sys.stdin.read().split() if list(given) == ["-"] else given
    return [_parsed(part) for word in words for part in word.split(",") if part]


def _parsed(word: str) -> int:
    if not word.isascii() or not word.isdigit() or not 0 < int(word) <= _LARGEST:
        raise UsageError(f"{word!r} is no id: write whole numbers, or - for one per line on stdin")
    return int(word)
