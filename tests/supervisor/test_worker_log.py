from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgq_tui.supervisor import worker_log
from pgq_tui.supervisor.worker_log import WorkerLog, sweep_logs


@pytest.fixture
def log(tmp_path: Path) -> Iterator[WorkerLog]:
    written = WorkerLog(tmp_path / "logs" / "w.log")
    yield written
    written.close(now=1e9)


def print_lines(log: WorkerLog, *lines: str, now: float) -> None:
    for line in lines:
        log.append(line)
    log.flush(now)


def test_lines_stand_in_the_file_in_their_order(log: WorkerLog) -> None:
    print_lines(log, "one", "two", now=0.0)
    print_lines(log, "three", now=0.1)

    assert log.path.read_text() == "one\ntwo\nthree\n"
    assert log.path.parent.stat().st_mode & 0o077 == 0


def test_the_file_and_its_predecessor_stay_bounded(log: WorkerLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_log, "FILE_LIMIT", 10_000)

    for second in range(100):
        print_lines(log, f"{second:03} " + "x" * 1000, now=float(second))

    files = sorted(log.path.parent.iterdir())
    assert [path.name for path in files] == ["w.log", "w.log.1"]
    assert sum(path.stat().st_size for path in files) <= 20_000
    assert log.path.read_text().splitlines()[-1].startswith("099 ")


def test_a_file_that_cannot_be_written_costs_lines_and_nothing_else(log: WorkerLog) -> None:
    blocker = log.path.parent
    blocker.write_text("a file where the directory should be")

    print_lines(log, "one", now=0.0)
    assert log.dropped == 1

    blocker.unlink()
    print_lines(log, "two", now=1.0)
    print_lines(log, "three", now=worker_log.REOPEN_AFTER)
    assert log.dropped == 2
    assert log.path.read_text() == "three\n"


def test_a_full_disk_costs_lines_and_nothing_else() -> None:
    log = WorkerLog(Path("/dev/full"))

    print_lines(log, "one", "two", now=0.0)
    log.close(now=1.0)

    assert log.dropped == 2


def test_text_that_no_encoding_takes_is_written_visibly(log: WorkerLog) -> None:
    print_lines(log, "a\ud800b", "[red]\x1b[31m", now=0.0)

    assert log.path.read_text() == "a\\ud800b\n[red]\x1b[31m\n"


def test_old_logs_are_swept_with_their_predecessors(tmp_path: Path) -> None:
    for number in range(5):
        for name in (f"w{number}.log", f"w{number}.log.1"):
            (tmp_path / name).write_text("x")
            os.utime(tmp_path / name, (number, number))

    sweep_logs(tmp_path, keep=2, in_use=[tmp_path / "w0.log"])

    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["w0.log", "w0.log.1", "w3.log", "w3.log.1", "w4.log", "w4.log.1"]
