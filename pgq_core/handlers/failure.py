"""What is kept of a handler's exception: message, class, traceback, and the frame of the application it came from."""

from __future__ import annotations

import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

from pgq_core.domain.fingerprint import fingerprint
from pgq_core.domain.text import describe, storable

MAX_TRACEBACK: Final = 32 * 1024
_OWN = str(Path(__file__).resolve().parents[1])
_LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@dataclass(frozen=True, slots=True)
class Failure:
    """All texts are storable. `frame`: the innermost frame of the application, `file:function`."""

    error: str
    error_class: str | None = None
    traceback: str | None = None
    frame: str | None = None

    def fingerprint(self, job_type: str) -> str:
        """Equal for failures of one kind."""
        return fingerprint(job_type, self.error_class, self.error, self.frame)


def failure_of(error: BaseException | str) -> Failure:
    """Reads an exception (or takes a plain message); never raises, whatever the exception's own code does."""
    if isinstance(error, str):
        return Failure(storable(error) or "failed without a message")
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return Failure(
        error=describe(error),
        error_class=storable(f"{module}{kind.__qualname__}", limit=300),
        traceback=_traceback(error),
        frame=_application_frame(error.__traceback__),
    )


def _traceback(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(error))
    except BaseException as broken:  # noqa: BLE001 - formatting calls the exception's own code
        return f"the traceback cannot be shown: {type(broken).__name__}"
    if len(text) > MAX_TRACEBACK:  # both ends tell something: where it began and what was raised
        half = MAX_TRACEBACK // 2
        text = f"{text[:half]}\n... [{len(text) - MAX_TRACEBACK} characters cut] ...\n{text[-half:]}"
    return storable(text)


def _application_frame(trace: TracebackType | None) -> str | None:
    innermost = application = None
    while trace is not None:
        code = trace.tb_frame.f_code
        innermost = f"{Path(code.co_filename).name}:{code.co_name}"
        if not _is_library(code.co_filename):
            application = innermost
        trace = trace.tb_next
    found = application or innermost
    return None if found is None else storable(found, limit=300)


def _is_library(file: str) -> bool:
    return file.startswith((_OWN, "<frozen", *_LIBRARIES)) or "site-packages" in file
