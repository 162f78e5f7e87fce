"""Signals whose effect is awaited: the kernel delivers one when the process runs next, which may be later."""

from __future__ import annotations

import os
import signal

import psutil

from tests.support.waiting import eventually


def suspend(pid: int) -> None:
    """SIGSTOP, and the process stands still when this returns."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)
