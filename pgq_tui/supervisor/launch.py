"""Starting, finding and stopping supervisors from another program, such as the console."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pgq_core.queries import Queries
from pgq_tui.supervisor.errors import SupervisorNotStarted
from pgq_tui.supervisor.host_lock import HostLock
from pgq_tui.supervisor.options import SupervisorOptions, default_state_dir
from pgq_tui.supervisor.own_log import open_log
from pgq_tui.supervisor.question import answer_to

START_SECONDS = 20.0
"""A supervisor that waits for its database is not in charge; whoever asked for one wants to know that."""


@dataclass(frozen=True, slots=True)
class SupervisorInfo:
    """A living supervisor of a host. `log`: where one without a terminal writes to, when this process started it."""

    host: str
    supervisor_id: str
    pid: int
    log: Path | None = None


def start_detached(options: SupervisorOptions, *, timeout: float = START_SECONDS) -> SupervisorInfo:
    """Start a supervisor that outlives this process, without a terminal; blocks until it is in charge.

    Raises SupervisorNotStarted; also when another one is in charge already.
    """
    log = _log_of(options)
    with _spawned(options, log) as (process, report):
        # The input ends here: all it will ever be told it has been told.
        _close_input(process)
        info = _in_charge(process, report, options, log, timeout)
    # Collects its exit, so that no zombie stays behind in a console that lives longer.
    threading.Thread(target=process.wait, name=f"wait-{process.pid}", daemon=True).start()
    return info


@dataclass(slots=True)
class TiedSupervisor:
    """A supervisor that drains and leaves when its starter ends, crashes or calls `stop`."""

    info: SupervisorInfo
    process: subprocess.Popen[bytes]

    def ask_to_stop(self) -> None:
        """It drains its workers and leaves; asked again, it hands their jobs back at once."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            _close_input(self.process)
        else:
            self.process.send_signal(signal.SIGTERM)

    def wait(self, timeout: float) -> bool:
        """Whether it is gone within `timeout` seconds."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return False
        return True


def start_tied(options: SupervisorOptions, *, timeout: float = START_SECONDS) -> TiedSupervisor:
    """Start a supervisor that does not outlive this process. Blocks until it is in charge."""
    log = _log_of(options)
    with _spawned(options, log, "--tied") as (process, report):
        return TiedSupervisor(_in_charge(process, report, options, log, timeout), process)


async def find_running(
    dsn: str, schema: str, host: str, *, stale_limit: float = 30.0, state_dir: Path | None = None
) -> SupervisorInfo | None:
    """The supervisor in charge of `host`, or one on this machine that is about to be. One known to be dead is none.

    Raises DatabaseUnavailable.
    """
    lock = HostLock(state_dir or default_state_dir(), host=host, dsn=dsn, schema=schema)
    local = lock.living_holder()
    if local is not None:
        return SupervisorInfo(host, local.supervisor_id, local.pid)
    find = Queries(schema).find_supervisor(host=host, stale_limit=timedelta(seconds=stale_limit))
    row = await answer_to(dsn, find)
    if row is None or row.is_stale or lock.proves_dead(row.supervisor_id):
        return None
    return SupervisorInfo(host, row.supervisor_id, row.pid)


def stop_detached(
    dsn: str, schema: str, host: str, *, at_once: bool = False, timeout: float = 0.0, state_dir: Path | None = None
) -> bool:
    """Ask the supervisor of this machine to drain its workers and leave (`at_once`: to hand their jobs back).

    Waits up to `timeout` seconds; whether it is gone. Nobody else's process is ever signalled.
    """
    lock = HostLock(state_dir or default_state_dir(), host=host, dsn=dsn, schema=schema)
    deadline = time.monotonic() + timeout
    # Two different signals: the same one twice may arrive as one.
    for number in (signal.SIGTERM, signal.SIGINT) if at_once else (signal.SIGTERM,):
        lock.signal_holder(number)
    while (is_alive := lock.living_holder() is not None) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive


def _log_of(options: SupervisorOptions) -> Path:
    """Supervisors of other databases on this machine write elsewhere."""
    settings = options.settings
    lock = HostLock(options.state_dir, host=options.host, dsn=settings.dsn or "", schema=settings.db_schema)
    return lock.path.with_suffix(".log")


@contextlib.contextmanager
def _spawned(options: SupervisorOptions, log: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The process and the descriptor of its report; a process that does not get into charge is ended again."""
    report, report_end = os.pipe()
    log_descriptor = open_log(log)
    command = [sys.executable, "-m", "pgq_tui.supervisor", f"--report={report_end}", f"--log={log}", *flags]
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log_descriptor,
            stderr=log_descriptor,
            pass_fds=(report_end,),
            start_new_session=True,
        )
    except BaseException:
        os.close(report)
        raise
    finally:
        os.close(report_end)
        os.close(log_descriptor)
    try:
        _tell(process, options)
        yield process, report
    except BaseException:
        _close_input(process)
        process.terminate()
        process.wait(options.longest_grace + 5.0)
        raise
    finally:
        os.close(report)


def _tell(process: subprocess.Popen[bytes], options: SupervisorOptions) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):  # it ended already; its report, or its silence, says why
            process.stdin.write(options.model_dump_json().encode() + b"\n")
            process.stdin.flush()


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def _in_charge(
    process: subprocess.Popen[bytes], report: int, options: SupervisorOptions, log: Path, timeout: float
) -> SupervisorInfo:
    ready, _, _ = select.select([report], [], [], timeout)
    if not ready:
        raise SupervisorNotStarted(f"it was not in charge within {timeout:g} s", log)
    line = os.read(report, 65536)
    if not line:
        raise SupervisorNotStarted(f"it ended with exit code {process.wait(5.0)}", log)
    content = json.loads(line)
    if "error" in content:
        raise SupervisorNotStarted(content["error"], log, is_running=content.get("is_running", False))
    return SupervisorInfo(options.host, content["supervisor_id"], process.pid, log)
