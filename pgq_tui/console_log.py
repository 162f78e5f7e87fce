"""Log lines of a program that owns the terminal: into a file, never onto the screen."""

from __future__ import annotations

import contextlib
import logging
import threading
from logging.handlers import RotatingFileHandler

from pgq_tui.crash import redacted, state_directory

_LIMIT = 1024 * 1024


class _Redacting(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


def log_to_file() -> None:
    """Warnings and errors go to `console.log` in the state directory; without a place to write to they are dropped."""
    root = logging.getLogger()
    handler: logging.Handler = logging.NullHandler()
    with contextlib.suppress(OSError):
        directory = state_directory()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handler = RotatingFileHandler(directory / "console.log", maxBytes=_LIMIT, backupCount=1, encoding="utf-8")
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    threading.excepthook = _log_thread


def _log_thread(arguments: threading.ExceptHookArgs) -> None:
    """An exception that ends a thread is written down; printed, it would stand in the middle of the picture."""
    name = arguments.thread.name if arguments.thread else "a thread"
    logging.getLogger(__name__).error("%s ended by an exception", name, exc_info=arguments.exc_value)
