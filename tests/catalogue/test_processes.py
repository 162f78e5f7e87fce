"""Worker processes, their terminals and their signals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import FAST, ROOT, Workers

pytestmark = pytest.mark.system

APP = "tests.catalogue.app"


def test_bytes_of_no_encoding_in_a_world_without_utf8_harm_nobody(
    database: QueueDatabase, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LANG", "LC_ALL", "LC_CTYPE"):
        monkeypatch.setenv(name, "C" if name == "LANG" else "POSIX")
    monkeypatch.setenv("PYTHONUTF8", "0")
    monkeypatch.setenv("PYTHONCOERCECLOCALE", "0")
    printed = database.put("print_bytes", {"text": "日本"})
    worker = workers.start(apps=(APP,))

    eventually(lambda: database.outcomes(printed) == ["succeeded"], timeout=30)
    later = database.put("noop")
    eventually(lambda: database.outcomes(later) == ["succeeded"], timeout=30)

    assert worker.stop() == 0
    text = worker.log.read_bytes().decode("utf-8")  # whatever came in, what goes out is whole
    assert "\N{REPLACEMENT CHARACTER}" in text
    assert "日" in text
    for line in text.splitlines():
        if line.startswith("{"):
            json.loads(line)


def test_jobs_that_take_the_stop_signals_away_do_not_keep_their_worker(
    database: QueueDatabase, workers: Workers
) -> None:
    deaf = database.put("ignore_stop")
    worker = workers.start(apps=(APP,), grace=1)
    eventually(lambda: database.outcomes(deaf) == ["succeeded"], timeout=30)
    reading = database.put("read_socket", max_attempts=1)
    eventually(lambda: (database.job(reading) or {})["status"] == "running", timeout=30)

    assert worker.stop() == 0

    assert database.outcomes(reading) == ["released"]
    assert (database.job(reading) or {})["attempts"] == 0
    assert database.all(FAULTS) == []


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_in_a_terminal_reaches_the_worker_and_not_its_jobs(
    database: QueueDatabase, tmp_path: Path, presses: int
) -> None:
    job_id = database.put("sleep", {"seconds": 1.5 if presses == 1 else 60})
    log = tmp_path / "log"
    controller, terminal = pty.openpty()
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [sys.executable, "-c", TAKE_THE_TERMINAL, "tests.worker.program", APP],
            cwd=ROOT,
            env={**os.environ, **FAST, "DATABASE_URL": database.dsn, "PGQ_GRACE": "30"},
            stdin=terminal,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        eventually(lambda: (database.job(job_id) or {})["status"] == "running", timeout=30)
        for _ in range(presses):
            os.write(controller, b"\x03")
            eventually(lambda: b"worker_stopping" in log.read_bytes(), timeout=30)
            time.sleep(0.2)  # two presses of one person

        assert worker.wait(60) == 0
        assert database.outcomes(job_id) == (["succeeded"] if presses == 1 else ["released"])
        assert b"Traceback" not in log.read_bytes()
    finally:
        for descriptor in (controller, terminal):
            os.close(descriptor)
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait(60)


TAKE_THE_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
name = sys.argv[1]
sys.argv = sys.argv[1:]
runpy.run_module(name, run_name="__main__", alter_sys=True)
"""
