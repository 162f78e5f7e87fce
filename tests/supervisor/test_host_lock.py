from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pgq_tui.supervisor.host_lock import Holder, HostLock
from tests.support.waiting import eventually

HOLD = """
import sys, time
from pathlib import Path
from pgq_tui.supervisor.host_lock import Holder, HostLock
import os
lock = HostLock(Path(sys.argv[1]), host="h", dsn="d", schema="s")
lock.take(Holder("first", os.getpid()))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def lock(tmp_path: Path) -> HostLock:
    return HostLock(tmp_path, host="h", dsn="d", schema="s")


def start_holder(directory: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(directory)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_a_living_holder_is_named_and_refuses_a_second_one(lock: HostLock, tmp_path: Path) -> None:
    with start_holder(tmp_path) as holder:
        try:
            assert lock.living_holder() == Holder("first", holder.pid)
            assert not lock.proves_dead("first")
            with pytest.raises(BlockingIOError):
                lock.take(Holder("second", os.getpid()))
        finally:
            holder.kill()


def test_a_killed_holder_is_proven_dead_at_once_and_succeeded(lock: HostLock, tmp_path: Path) -> None:
    with start_holder(tmp_path) as holder:
        holder.kill()

    assert lock.proves_dead("first")
    assert not lock.proves_dead("somebody else")
    assert lock.take(Holder("second", os.getpid())) == Holder("first", holder.pid)
    lock.release()


def test_the_living_holder_is_signalled(lock: HostLock, tmp_path: Path) -> None:
    with start_holder(tmp_path) as holder:
        assert lock.signal_holder(signal.SIGTERM)
        assert holder.wait(60) == -signal.SIGTERM
    assert not lock.signal_holder(signal.SIGTERM)


def test_a_foreign_process_named_in_a_stale_file_is_never_signalled(lock: HostLock, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            lock.path.write_text(json.dumps({"supervisor_id": "old", "pid": stranger.pid}))

            assert lock.living_holder() is None
            assert not lock.signal_holder(signal.SIGKILL)
            assert stranger.poll() is None
        finally:
            stranger.kill()


@pytest.mark.parametrize("content", ["", "{}", "[1]", '"x"', "not json", '{"supervisor_id": "a", "pid": "x"}'])
def test_a_file_that_somebody_else_wrote_proves_nothing(lock: HostLock, content: str) -> None:
    lock.path.write_text(content)

    assert lock.living_holder() is None
    assert not lock.proves_dead("a")
    assert lock.take(Holder("mine", os.getpid())) is None
    assert eventually(lock.living_holder) == Holder("mine", os.getpid())
    lock.release()


def test_hosts_databases_and_schemas_have_locks_of_their_own(tmp_path: Path) -> None:
    names = [("h", "d", "s"), ("h2", "d", "s"), ("h", "d2", "s"), ("h", "d", "s2")]

    paths = {HostLock(tmp_path, host=host, dsn=dsn, schema=schema).path for host, dsn, schema in names}

    assert len(paths) == len(names)
