"""One queue in words: what is out of the ordinary about it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pgq_core.domain.audit import Audit
from pgq_core.domain.snapshot import Overview, QueueView, ServerView
from pgq_tui.view_model.palette import PLAIN
from pgq_tui.view_model.queue_detail import queue_detail

SERVER = ServerView("18.4", "db", "me", "localhost", 0.001, is_read_only=False)
VIEW = Overview(datetime(2026, 11, 29, 12, tzinfo=UTC), SERVER)


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (QueueView("mail"), []),
        (QueueView("mail", audit=Audit.FAILURES), ["failures only"]),
        (QueueView("mail", audit=Audit.SAMPLE, audit_sample=0.01), ["failures and 1 % of successes"]),
    ],
)
def test_queue_that_does_not_keep_every_run_says_so(queue: QueueView, words: list[str]) -> None:
    facts = queue_detail(queue, VIEW, PLAIN).facts

    assert [str(fact.value) for fact in facts if fact.label == "runs kept"] == words
