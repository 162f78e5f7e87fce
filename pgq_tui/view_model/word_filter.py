"""Narrowing rows that are all here: by words, without a question to the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgq_core.domain.snapshot import Overview, QueueView
from pgq_tui.view_model.fleet import FleetPool, pool_state, worker_state


def words_of(line: str) -> tuple[str, ...]:
    """The words of a filter line, in the form they are compared in.

    >>> words_of("  Mail crashed ")
    ('mail', 'crashed')
    """
    return tuple(line.casefold().split())


def holds_words(words: Sequence[str], *texts: str) -> bool:
    """Whether each word is in one of the texts.

    >>> holds_words(("mail", "pau"), "emails", "paused"), holds_words(("mail", "x"), "emails"), holds_words((), "a")
    (True, False, True)
    """
    whole = "\n".join(texts).casefold()
    return all(word in whole for word in words)


def matching_queues(view: Overview, words: Sequence[str], in_trouble: frozenset[str]) -> list[QueueView]:
    """Queues whose name or state holds the words; `trouble` is one that needs attention."""
    return [queue for queue in view.queues if holds_words(words, queue.name, *_queue_words(queue, in_trouble))]


def _queue_words(queue: QueueView, in_trouble: frozenset[str]) -> tuple[str, ...]:
    return tuple(
        word
        for word, applies in (
            ("paused", queue.paused),
            ("trouble", queue.name in in_trouble),
            ("idle", not (queue.pending.value or queue.running or queue.rate_out)),
        )
        if applies
    )


def matching_workers(group: FleetPool, words: Sequence[str], view: Overview) -> FleetPool | None:
    """The pool with all its workers when the words are about it, else with those that they are about."""
    if holds_words(words, *_pool_words(group, view)):
        return group
    workers = tuple(one for one in group.workers if holds_words(words, one.id, worker_state(one), *one.queues))
    return replace(group, workers=workers) if workers else None


def _pool_words(group: FleetPool, view: Overview) -> tuple[str, ...]:
    if group.pool is None:
        return ("no pool",)
    return (group.pool.name, group.pool.host, *group.pool.queues, *pool_state(group.pool, view.taken_at))
