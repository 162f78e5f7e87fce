"""What is left of a crash: a file with the traceback, and one line on the terminal that gives nothing away."""

from __future__ import annotations

import re
import traceback
from datetime import UTC, datetime
from pathlib import Path

import platformdirs

_PASSWORD = re.compile(r"(://[^:/@\s]*:)[^@\s]+@|(password\s*=\s*)\S+", re.IGNORECASE)
_KEPT = 20


def state_directory() -> Path:
    """Where the console writes its log and its crashes."""
    return platformdirs.user_state_path("pgq-tui", appauthor=False)


def write_crash_log(error: BaseException, directory: Path | None = None) -> tuple[str, Path | None]:
    """The line for the terminal, and the file with the rest; without a place to write to there is no file.

    The line names the kind of error and where it was raised, never its message: that may hold a payload or a password.
    """
    folder = directory or state_directory()
    where = _place(error)
    path = folder / f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.log"
    text = "".join(traceback.format_exception(error))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _drop_old(folder)
        path.touch(mode=0o600)
        path.write_text(redacted(text), encoding="utf-8", errors="backslashreplace")
    except OSError:
        return f"pgq-tui crashed: {type(error).__name__} in {where}; its details could not be written", None
    return f"pgq-tui crashed: {type(error).__name__} in {where}; details: {path}", path


def redacted(text: str) -> str:
    """The text without passwords of database addresses.

    >>> redacted("postgresql://app:s3cret@db/jobs and host=db password=s3cret")
    'postgresql://app:***@db/jobs and host=db password=***'
    """
    return _PASSWORD.sub(lambda match: f"{match[1]}***@" if match[1] else f"{match[2]}***", text)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "an unknown place"
    last = frames[-1]
    return f"{'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"


def _drop_old(folder: Path) -> None:
    for old in sorted(folder.glob("crash-*.log"))[: -_KEPT + 1]:
        old.unlink(missing_ok=True)
