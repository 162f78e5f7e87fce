"""A worker that leaves takes none of its spans along, and waits for no collector that is away."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.queue_database import QueueDatabase
from tests.support.worker_process import WorkerProcess

PATIENCE = 120.0


@pytest.mark.parametrize("hangs", [False, True], ids=["collector answers", "collector hangs"])
def test_a_worker_that_leaves_sends_its_last_spans(
    database: QueueDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    if hangs:
        monkeypatch.setenv("HANGS", "yes")
    job = database.put("traced")
    worker = WorkerProcess(database, tmp_path / "log", "--burst", apps=("tests.traces.held_back",))
    try:
        assert worker.process.wait(PATIENCE) == 0, worker.text()
    finally:
        worker.kill_all()

    assert [run["outcome"] for run in database.runs(job)] == ["succeeded"]
    assert "sent wait default and run default" in worker.text()
