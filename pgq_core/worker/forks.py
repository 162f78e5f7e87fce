"""A job may fork. Its child is a copy of the whole worker, sockets included, and must never go on as one."""

from __future__ import annotations

import os
import signal


class ThisProcess:
    """Whether this process is a copy that a job made."""

    is_copy = False


def guard_forks() -> None:
    """Once per runner: from here on its forks know what they are."""
    os.register_at_fork(after_in_child=_become_copy)


def end_copy() -> None:
    """The forked child of a job has returned from the handler: its work is done, the rest is the parent's."""
    os._exit(0)


def _become_copy() -> None:
    ThisProcess.is_copy = True
    # A signal to the child would wake the parent's loop through the pipe they share, and the parent would obey it.
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
