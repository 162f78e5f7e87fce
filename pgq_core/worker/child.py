"""A runner's process as its keeper sees it: started in its own session, its pipes drained, its end noticed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import psutil

from pgq_core.worker.marks import Marks
from pgq_core.worker.output import READ_SIZE, LineSplitter, read_available
from pgq_core.worker.protocol import ORDERS_VARIABLE, Report, RunnerOrders

_LAST_GULP: Final = 1024 * 1024
"""Bytes still read from the pipes of a dead child: grandchildren may keep them open and go on writing."""


class Child:
    """One started runner process. `on_exit` is called once, on the loop, when it is dead and its pipes are read."""

    def __init__(
        self,
        *,
        on_lines: Callable[[str, list[str]], None],
        on_report: Callable[[Report], None],
        on_exit: Callable[[int], None],
    ) -> None:
        self._on_report = on_report
        self._on_exit = on_exit
        self._splitters = {
            name: LineSplitter(lambda lines, name=name: on_lines(name, lines))  # type: ignore[misc]  # a default that binds
            for name in ("out", "err")
        }
        self._report_splitter = LineSplitter(self._take_reports)
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._control = -1
        self._usage: psutil.Process | None = None
        self.is_dead = False

    def start(self, orders: RunnerOrders, marks: Marks, *, cwd: str | None, env: Mapping[str, str]) -> None:
        """Starts the process. Raises OSError when the system refuses."""
        self._loop = asyncio.get_running_loop()
        control_read, control_write = os.pipe()
        report_read, report_write = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pgq_core.worker.runner"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=cwd,
                env={**os.environ, **env, ORDERS_VARIABLE: str(control_read)},
                pass_fds=(control_read, report_write, marks.descriptor),
                start_new_session=True,  # the terminal's Ctrl-C reaches the keeper alone
            )
        except OSError:
            os.close(control_write)
            os.close(report_read)
            raise
        finally:
            os.close(control_read)
            os.close(report_write)
        self.pid = self._process.pid
        self._control = control_write
        with contextlib.suppress(BrokenPipeError):  # it is dead already; its exit will say so
            os.write(control_write, replace(orders, report_descriptor=report_write).encode())
        self._watch(self._process.stdout.fileno(), self._splitters["out"].feed)  # type: ignore[union-attr]  # PIPE
        self._watch(self._process.stderr.fileno(), self._splitters["err"].feed)  # type: ignore[union-attr]  # PIPE
        self._watch(report_read, self._report_splitter.feed)
        self._report = report_read
        with contextlib.suppress(psutil.Error):
            self._usage = psutil.Process(self.pid)
            self._usage.cpu_percent()  # the first call only starts the measurement
        threading.Thread(target=self._await_death, name=f"pgq-wait-{self.pid}", daemon=True).start()

    def signal(self, number: int) -> None:
        """Signals the process itself; never another one that was given its pid, since it is reaped only by us."""
        if not self.is_dead:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    def kill(self) -> None:
        """Ends the process and all that it started in its session's group."""
        if not self.is_dead:
            self._kill_group()

    def is_suspended(self) -> bool:
        """Whether it was stopped (SIGSTOP, ^Z, a debugger): it cannot know what happens meanwhile."""
        if self._usage is None:
            return False
        try:
            return self._usage.status() in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
        except psutil.Error:
            return False

    def usage(self) -> tuple[float | None, int | None]:
        """CPU (percent of one core since the last call) and resident bytes."""
        if self._usage is None:
            return None, None
        try:
            with self._usage.oneshot():
                return self._usage.cpu_percent(), self._usage.memory_info().rss
        except psutil.Error:
            return None, None

    def _watch(self, descriptor: int, feed: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self._readers[descriptor] = feed
        self._loop.add_reader(descriptor, self._read, descriptor)

    def _read(self, descriptor: int) -> None:
        data = read_available(descriptor)
        if data == b"":
            self._unwatch(descriptor)
        elif data is not None:
            self._readers[descriptor](data)

    def _unwatch(self, descriptor: int) -> None:
        if descriptor in self._readers:
            self._loop.remove_reader(descriptor)
            del self._readers[descriptor]

    def _take_reports(self, lines: list[str]) -> None:
        for line in lines:
            # A report cut short by a dying runner says nothing.
            with contextlib.suppress(ValueError, KeyError):
                self._on_report(Report.decode(line.encode()))

    def _await_death(self) -> None:
        # Noticed without reaping where the system can: until reaped, its pid and its group cannot be anybody else's.
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            self._loop.call_soon_threadsafe(self._bury)

    def _bury(self) -> None:
        self._kill_group()
        code = self._process.wait()
        self.is_dead = True
        for descriptor, feed in list(self._readers.items()):
            gulped = 0
            while gulped < _LAST_GULP and (data := read_available(descriptor, READ_SIZE)):
                feed(data)
                gulped += len(data)
            self._unwatch(descriptor)
        for splitter in (*self._splitters.values(), self._report_splitter):
            splitter.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        os.close(self._report)
        os.close(self._control)
        self._on_exit(code)

    def _kill_group(self) -> None:
        """What a job started and left behind ends with its worker."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
