"""Completions of the command line: the commands, with the names of queues and pools where they take one."""

from __future__ import annotations

from pgq_core.domain.snapshot import Overview
from pgq_tui.commands import known_words

_MOST = 200


def suggestions(view: Overview | None) -> tuple[str, ...]:
    """Whole lines, so that the first letters of one complete it.

    >>> "help" in suggestions(None), "pause " in suggestions(None)
    (True, True)
    """
    lines = [word for word in known_words() if word not in _WITH_NAME]
    lines += [f"{word} " for word in _WITH_NAME]
    if view is not None:
        lines += [f"{word} {queue.name}" for word in ("pause", "resume") for queue in view.queues[:_MOST]]
        lines += [f"audit {queue.name} " for queue in view.queues[:_MOST]]
        lines += [f"scale {pool.name} " for pool in view.pools[:_MOST]]
    return tuple(lines)


_WITH_NAME = ("pause", "resume", "audit", "scale", "filter", "theme")
