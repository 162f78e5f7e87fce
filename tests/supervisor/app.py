"""The application of the supervisor's tests."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from pgq_core.handlers import handler


@handler("quick")
def quick(data: dict[str, Any]) -> None:
    pass


@handler("sleep")
def sleep(data: dict[str, float]) -> None:
    time.sleep(data["seconds"])


@handler("die", max_attempts=1)
def die(data: dict[str, Any]) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@handler("print")
def print_lines(data: dict[str, int]) -> None:
    for number in range(data["lines"]):
        sys.stdout.write(f"line {number} of {os.environ.get('SIGNATURE')} in {Path.cwd()}\n")
    sys.stdout.flush()
