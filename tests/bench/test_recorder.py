"""The memory that workers write and the benchmark reads."""

from __future__ import annotations

import threading
import time

import pytest

from pgq_core.bench.recorder import MOST_WORKERS, SLOT_VARIABLE, Recorder, recording


def test_recording_counts_the_starts_of_every_worker() -> None:
    with recording(2) as memory:
        first, second = Recorder(str(memory.path), 0), Recorder(str(memory.path), 1)
        for number in range(3):
            first.start(number)
        second.start(7)

        assert memory.started() == 4
        assert memory.shares() == [3, 1]
        assert memory.environment(1)[SLOT_VARIABLE] == "1"


def test_recording_without_starts_knows_no_time() -> None:
    with recording(1) as memory:
        assert memory.first_start() is None
        assert memory.last_start() is None


def test_times_of_each_job_are_kept_where_asked_for() -> None:
    with recording(1, stamps=3) as memory:
        recorder = Recorder(str(memory.path), 0)
        before = time.monotonic()
        recorder.start(2)
        recorder.end(2)

        start, end = memory.start_of(2), memory.end_of(2)
        assert start is not None
        assert end is not None
        assert before <= start <= end <= time.monotonic()
        assert memory.start_of(1) is None
        with pytest.raises(IndexError):
            memory.start_of(3)


def test_starts_on_many_threads_are_all_counted() -> None:
    with recording(1) as memory:
        recorder = Recorder(str(memory.path), 0)
        threads = [threading.Thread(target=lambda: [recorder.start_on_thread(0) for _ in range(500)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert memory.started() == 4000


def test_file_of_a_recording_is_gone_afterwards() -> None:
    with recording(1) as memory:
        assert memory.path.exists()
    assert not memory.path.exists()


def test_more_workers_than_slots_are_refused() -> None:
    with pytest.raises(ValueError, match=f"room for {MOST_WORKERS}"), recording(MOST_WORKERS + 1):
        pass
