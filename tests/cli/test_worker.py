"""`pgq-core worker` and `pgq-core maintain` as processes: how they are called, and what they answer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program
from tests.support.zoo import add_job

Arrange = Callable[..., Any]

pytestmark = pytest.mark.system

TASKS = """
from pgq_core import handler

@handler("hello")
def hello(data):
    return {"hello": data["name"]}

@handler("hopeless", max_attempts=1)
def hopeless(data):
    raise ValueError("simulated failure")
"""


@pytest.fixture
def app_folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def test_worker_runs_what_is_there_and_ends_when_nothing_is_left(
    program: Program, arrange: Arrange, app_folder: Path
) -> None:
    arrange(add_job, "hello", queue="a", data={"name": "you"})
    arrange(add_job, "hopeless", queue="b", max_attempts=1)
    arrange(add_job, "hello", queue="not served")

    answer = program("worker", "--app", app_folder / "tasks.py", "-q", "a", "-q", "b", "-c", "2", "--burst")

    assert answer.code == 0, answer.err
    assert program("runs", "--outcome", "succeeded", "--json").json[0]["queue"] == "a"
    (letter,) = program("dead", "--json").json
    assert (letter["queue"], letter["last_error"]) == ("b", "ValueError: simulated failure")
    assert [job["queue"] for job in program("jobs", "--json").json] == ["not served"]


def test_worker_without_its_app_fails_with_a_reason(program: Program) -> None:
    answer = program("worker", "--app", "no_such_module_anywhere")

    assert answer.code == 1
    assert "no_such_module_anywhere" in answer.err
    assert program("worker").code == 2


def test_worker_and_maintenance_refuse_a_schema_that_is_not_there(program: Program, app_folder: Path) -> None:
    for args in (("worker", "--app", app_folder / "tasks.py"), ("maintain",)):
        answer = program(*args, "--schema", "elsewhere")
        assert (answer.code, "pgq-core migrate --schema elsewhere" in answer.err) == (3, True)


def test_read_only_session_runs_no_worker(program: Program, app_folder: Path) -> None:
    assert program("worker", "--app", app_folder / "tasks.py", "--read-only").code == 4
    assert program("maintain", "--read-only").code == 4


def test_maintenance_runs_until_it_is_asked_to_stop(dsn: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "pgq_core.cli", "maintain"],
        env={**os.environ, "DATABASE_URL": dsn},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert "maintenance_taken_over" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    "command", [("worker", "--no-maintenance", "--app"), ("maintain",)], ids=["worker", "maintain"]
)
def test_worker_and_maintenance_wait_for_a_database_that_is_away(command: tuple[str, ...], app_folder: Path) -> None:
    """As a service manager starts them: perhaps before the server."""
    arguments = [*command, str(app_folder / "tasks.py")] if "--app" in command else list(command)
    process = subprocess.Popen(
        [sys.executable, "-m", "pgq_core.cli", *arguments],
        env={**os.environ, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        assert any("waits_for_database" in line for line in process.stderr)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) in {0, -signal.SIGTERM}  # it may not have got to its own handler yet
    finally:
        process.kill()
        process.communicate()
