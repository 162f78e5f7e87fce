"""The application of the supervisor's tests."""

from __future__ import annotations

import os
import signal
import subprocess
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


@handler("leave children")
def leave_children(data: dict[str, Any]) -> None:
    """A shell that starts a program and stays, as jobs do that call out."""
    shell = subprocess.Popen(["bash", "-c", "sleep 987 & echo $!; sleep 987"], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    Path(data["pids"]).write_text(f"{shell.pid} {shell.stdout.readline()}")
    shell.wait()


@handler("print")
def print_lines(data: dict[str, int]) -> None:
    for number in range(data["lines"]):
        sys.stdout.write(f"line {number} of {os.environ.get('SIGNATURE')} in {Path.cwd()}\n")
    sys.stdout.flush()
