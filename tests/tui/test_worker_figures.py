"""A worker's figures in the table and in its detail."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pgq_core.domain.snapshot import Overview, ServerView, WorkerView
from pgq_tui.view_model.palette import Palette
from pgq_tui.view_model.worker_detail import worker_detail
from pgq_tui.view_model.worker_table import WORKER_COLUMNS, worker_rows

NOW = datetime(2026, 3, 5, 12, 4, 31, tzinfo=UTC)


def worker(*, finished: int, failed: int) -> WorkerView:
    return WorkerView(
        id="h-mail-1",
        host="h",
        pid=1,
        pool=None,
        supervisor_id=None,
        queues=("emails",),
        job_types=("send",),
        concurrency=4,
        state="running",
        wanted="run",
        started_at=NOW,
        heartbeat_at=NOW,
        stopped_at=None,
        exit_code=None,
        exit_signal=None,
        exit_reason=None,
        running=0,
        finished=finished,
        failed=failed,
        late_writes=0,
        cpu_percent=None,
        rss_bytes=None,
        is_stale=False,
    )


@pytest.mark.parametrize(
    ("finished", "failed", "runs", "share"),
    [(4, 9, "13", "69.2"), (0, 3, "3", "100"), (7, 0, "7", "0.0"), (0, 0, "0", "–")],
)
def test_the_share_of_failures_is_of_all_runs(finished: int, failed: int, runs: str, share: str) -> None:
    view = Overview(
        NOW,
        ServerView("18.6", "jobs", "app", "db", 0.001, False),
        (),
        (worker(finished=finished, failed=failed),),
        (),
        (),
    )
    cells = dict(zip((column.key for column in WORKER_COLUMNS), worker_rows(view, Palette())[1].cells, strict=True))

    assert (cells["done"].plain, cells["fail"].plain.strip()) == (runs, share)


def test_the_detail_counts_all_runs() -> None:
    facts = worker_detail(worker(finished=4, failed=9), NOW, Palette())

    assert "13, 69.2% of them failed" in str(facts)
