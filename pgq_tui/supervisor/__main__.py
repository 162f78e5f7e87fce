"""The supervisor as a process of its own, started by `start_detached` and `start_tied`; not meant to be typed.

Standard input brings the options as one line of JSON. A tied supervisor goes on listening: the end of the input means
that whoever started it is gone. Descriptor `--report` takes one line of JSON: in charge, or why not.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
from pathlib import Path

from pgq_core.errors import PgqError
from pgq_core.logs import configure_logs
from pgq_tui.supervisor.errors import SupervisorRunning
from pgq_tui.supervisor.options import SupervisorOptions
from pgq_tui.supervisor.own_log import keep_own_log_small
from pgq_tui.supervisor.run import Stoppable, run_supervisor

STDIN = 0


def main() -> int:
    arguments = _arguments()
    options = SupervisorOptions.model_validate_json(_first_line(STDIN))
    writer = configure_logs(format=options.settings.log_format, level=options.settings.log_level)
    report = _Report(arguments.report)

    async def beside(supervisor: Stoppable) -> None:
        if arguments.tied:
            asyncio.get_running_loop().add_reader(STDIN, _leave_with_parent, supervisor)
        await keep_own_log_small(arguments.log)

    try:
        return run_supervisor(options, on_charge=lambda name: report.send(supervisor_id=name), beside=beside)
    except SupervisorRunning as error:
        report.send(error=str(error), is_running=True)
        return 1
    except PgqError as error:
        report.send(error=str(error))
        return 3
    finally:
        writer.close()


def _leave_with_parent(supervisor: Stoppable) -> None:
    asyncio.get_running_loop().remove_reader(STDIN)
    supervisor.stop()


def _first_line(descriptor: int) -> bytes:
    """Read byte by byte: nothing of what may follow is to disappear in a buffer."""
    line = b""
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return line


class _Report:
    """Says one thing, once; nobody may be listening any more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def send(self, **content: str | bool) -> None:
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.write(self._descriptor, json.dumps(content).encode() + b"\n")
            os.close(self._descriptor)
        self._descriptor = None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pgq_tui.supervisor", description=__doc__)
    parser.add_argument("--report", type=int, required=True, metavar="FD")
    parser.add_argument("--log", type=Path, required=True, metavar="PATH")
    parser.add_argument("--tied", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
