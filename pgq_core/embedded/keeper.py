"""Whoever holds a lease looks after the server: one that died is started again, without anybody having to ask."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import threading
from collections.abc import Callable, Iterator

from pgq_core.errors import PgqError

LOOK_SECONDS = 1.0
LONGEST_PAUSE = 30.0

log = logging.getLogger(__name__)


@contextlib.contextmanager
def kept_alive(is_down: Callable[[], bool], revive: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
    """While the block runs, a thread looks once a second and revives what is down.

    `revive` is handed a question to ask once it has waited for others: whether it is still wanted. It is not waited for
    at the end of the block, since it may be starting something that takes its time.
    """
    leaving = threading.Event()
    thread = threading.Thread(target=_keep, args=(leaving, is_down, revive), name="pgq-server-keeper", daemon=True)
    thread.start()
    try:
        yield
    finally:
        leaving.set()


def _keep(leaving: threading.Event, is_down: Callable[[], bool], revive: Callable[[Callable[[], bool]], None]) -> None:
    pause = LOOK_SECONDS
    while not leaving.wait(pause):
        try:
            if is_down():
                log.warning("the embedded PostgreSQL is gone: starting it again")
                revive(lambda: not leaving.is_set())
            pause = LOOK_SECONDS
        except (PgqError, OSError, subprocess.SubprocessError) as error:
            pause = min(pause * 2, LONGEST_PAUSE)
            log.warning("the embedded PostgreSQL is not back, the next try is in %.0f s: %s", pause, error)
