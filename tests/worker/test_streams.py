"""The runner's standard streams under jobs that close them. Each test is a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap


def run_guarded(body: str) -> str:
    """What `body` prints after the guard is up."""
    program = "import os\nfrom pgq_core.worker.streams import guard_streams\nguard_streams()\n" + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_closing_the_standard_streams_leaves_no_gap_for_the_next_descriptor() -> None:
    printed = run_guarded(
        """
        for _ in range(2):
            for descriptor in (0, 1, 2):
                os.close(descriptor)
            os.closerange(0, 3)
        print(os.open(os.devnull, os.O_RDONLY) > 2, os.read(0, 10), os.write(1, b"nowhere"))
        """
    )

    assert printed == "True b'' 7\n"


def test_other_descriptors_are_closed_as_ever() -> None:
    printed = run_guarded(
        """
        first, second = os.pipe()
        os.close(first)
        os.closerange(second, second + 1)
        for descriptor in (first, second, -1):
            try:
                os.close(descriptor)
            except OSError as error:
                print(error.errno)
        """
    )

    assert printed == "9\n9\n9\n"


def test_forked_child_may_free_its_streams() -> None:
    printed = run_guarded(
        """
        pid = os.fork()
        if pid == 0:
            os.close(0)
            os._exit(os.open(os.devnull, os.O_RDONLY))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )

    assert printed == "0\n"
