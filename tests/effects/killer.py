"""The examples of examples/effects as an application whose worker dies before a chosen line, once per job.

A job's `tag` names it; `kill_at` counts the steps of a run from 1: its lines, its return, and its commit if it has one.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Any

from pgq_core.domain.retry import RetryPolicy
from pgq_core.handlers import default_registry, load_app
from pgq_core.worker.transactional import JobTransactions

EXAMPLES = Path(__file__).parents[2] / "examples" / "effects"
AT_ONCE = RetryPolicy(timedelta(milliseconds=1), timedelta(milliseconds=2))


class Steps:
    """The steps of one run."""

    def __init__(self, data: dict[str, Any]) -> None:
        directory = Path(os.environ["KILLS"])
        self._kill_at = data.get("kill_at")
        self._was_killed = directory / f"{data['tag']}.killed"
        self._record = directory / f"{data['tag']}.steps"
        self.taken = 0

    def take(self) -> None:
        self.taken += 1
        self._record.write_text(str(self.taken))
        if self.taken == self._kill_at and not self._was_killed.exists():
            self._was_killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)


current: Steps


def armed(function: Callable[..., Any]) -> Callable[..., Any]:
    file = function.__code__.co_filename

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != file:
            return None
        if event == "line":
            current.take()
        return trace

    @functools.wraps(function)
    def run(data: dict[str, Any], **given: Any) -> Any:
        global current  # noqa: PLW0603 - one job runs at a time
        current = Steps(data)
        sys.settrace(trace)
        try:
            answer = function(data, **given)
        finally:
            sys.settrace(None)
        current.take()
        return answer

    return run


def commit_and_die(run_sync: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run_sync)
    def run(*arguments: Any) -> Any:
        write = run_sync(*arguments)
        current.take()
        return write

    return run


JobTransactions.run_sync = commit_and_die(JobTransactions.run_sync)  # type: ignore[method-assign]
for example in sorted(EXAMPLES.glob("*.py")):
    load_app(str(example))
for known in list(default_registry):
    default_registry._handlers[known.type] = replace(known, function=armed(known.function), policy=AT_ONCE)
