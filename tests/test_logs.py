"""How log lines look: one line each, whatever text is in them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pgq_core.logs import LineWriter

PROGRAM = """
import logging, sys
from pgq_core.logs import configure_logs, get_logger

log = configure_logs(format=sys.argv[1], level="info")
logger = get_logger("pgq.test", worker_id="w")
logger.debug("too small")
logger.info("job_dead", error="a\\nb\\x1b[31m\\u202e" + chr(0xD800), job_id=2**70, nothing=None)
logger.info("long", error="x" * 100_000)
logging.getLogger("theirs").warning("of %s", "another library")
try:
    1 / 0
except ZeroDivisionError:
    logger.exception("broken")
log.close()
"""


def lines_of(form: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, form], capture_output=True, timeout=60, check=True)
    return done.stderr.decode("utf-8").splitlines()


def test_json_lines_are_json_whatever_is_in_them() -> None:
    lines = [json.loads(line) for line in lines_of("json")]

    assert [line["event"] for line in lines] == ["job_dead", "long", "of another library", "broken"]
    assert [line["level"] for line in lines] == ["info", "info", "warning", "error"]
    assert lines[0]["error"].startswith("a\nb\x1b[31m")
    assert lines[0]["job_id"] == 2**70
    assert "nothing" not in lines[0]
    assert len(lines[1]["error"]) < 2100
    assert lines[2]["component"] == "theirs"
    assert "ZeroDivisionError" in lines[3]["exception"]
    assert all(line["timestamp"].endswith("Z") for line in lines)


@pytest.mark.parametrize("control", ["\x1b", "\u202e", "\n"])
def test_lines_for_people_let_no_control_through(control: str) -> None:
    lines = lines_of("text")

    assert len(lines) == 4
    assert control not in lines[0]
    assert " info    job_dead worker_id=w " in lines[0]
    assert ' warning "of another library"' in lines[2]


MANY = """
import sys
from pgq_core.logs import configure_logs, get_logger, say_many

log = configure_logs(format=sys.argv[1], level=sys.argv[2])
logger = get_logger("pgq.test", worker_id="w")
rows = [{"job_id": number, "note": None, "queue": "q" * 3000} for number in range(1200)]
for row in rows:
    logger.info("done", **row)
say_many(logger, "done", rows)
log.close(30)
"""


@pytest.mark.parametrize("form", ["json", "text"])
def test_many_lines_at_once_are_the_lines_that_one_by_one_would_be(form: str) -> None:
    done = subprocess.run([sys.executable, "-c", MANY, form, "info"], capture_output=True, timeout=60, check=True)
    lines = [re.sub(r"\d\d:\d\d:\d\d\.\d+", "", line) for line in done.stderr.decode().splitlines()]

    assert len(lines) == 2400
    assert lines[:1200] == lines[1200:]


def test_many_lines_at_once_keep_to_the_level() -> None:
    done = subprocess.run([sys.executable, "-c", MANY, "json", "warning"], capture_output=True, timeout=60, check=True)

    assert done.stderr == b""


LAST_WORDS = """
import sys
from pgq_core.logs import LineWriter

class Leaving:
    def __init__(self):
        self.writer = LineWriter(1)

    def __del__(self):
        assert sys.is_finalizing()
        self.writer.write(b"a last word")

leaving = Leaving()
"""


def test_a_line_at_the_very_end_of_the_interpreter_holds_nobody_up() -> None:
    done = subprocess.run([sys.executable, "-c", LAST_WORDS], check=False, capture_output=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, b"")


def test_a_line_of_what_is_collected_in_the_middle_of_another_one_gets_through(tmp_path: Path) -> None:
    """The collector may run anywhere, and ends coroutines that log."""
    with (tmp_path / "log").open("wb") as log:
        writer = LineWriter(log.fileno())
        with writer._counting:
            writer.write(b"collected")
        writer.close()

    assert (tmp_path / "log").read_bytes() == b"collected\n"
