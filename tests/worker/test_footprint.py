"""What a worker's processes hold in memory: told by the modules they import, since megabytes depend on the machine."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import psutil
import pytest

from pgq_core.foreground import ForegroundOrders
from pgq_core.plain_settings import PlainSettings, plain
from pgq_core.settings import Settings, load_settings

HEAVY = {"pydantic", "pydantic_settings", "typer", "click", "psycopg_pool", "prometheus_client", "fastapi", "uvicorn"}
FOR_THE_APPLICATION = {"rich", "ssl", "_hashlib"}

KEEPER = """
from pgq_core.foreground import leave_out_needless
leave_out_needless()
import pgq_core.worker, pgq_core.maintenance
"""
RUNNER = """
import pgq_core.worker.runner
from pgq_core import handler

@handler("plain")
def plain(data): ...
"""
TELL = "import sys; print(sorted(name for name, module in sys.modules.items() if module is not None))"


def modules_of(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", program + TELL], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(ast.literal_eval(done.stdout))


def test_a_keeper_imports_neither_a_command_line_nor_validation_nor_a_second_tls() -> None:
    assert modules_of(KEEPER) & (HEAVY | FOR_THE_APPLICATION) == set()


def test_a_runner_imports_pydantic_for_those_who_have_models_only() -> None:
    assert modules_of(RUNNER) & HEAVY == set()


def test_plain_settings_are_all_settings_and_survive_the_way_to_another_process() -> None:
    settings = load_settings(dsn="postgresql://h/d", queues="a,b=2", mask_keys="password")

    assert [field.name for field in fields(PlainSettings)] == list(Settings.model_fields)
    assert plain(settings).queues == ("a", "b=2")
    assert ForegroundOrders.decode(
        ForegroundOrders(plain(settings), ("app",), None, True, False, True, None, "127.0.0.1").encode()
    ).settings == plain(settings)


@pytest.mark.system
def test_the_command_replaces_itself_by_its_keeper(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("from pgq_core import handler\n\n@handler('t')\ndef t(data): ...\n")
    (tmp_path / "select.py").write_text("raise RuntimeError('a stand-in for a module of Python')\n")
    command = [sys.executable, "-P", "-m", "pgq_core.cli", "worker", "--app", "app.py", "--no-maintenance"]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "DATABASE_URL": dsn}, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "runner_started" in line or "rror" in line)
            assert "runner_started" in line
            arguments = psutil.Process(process.pid).cmdline()
        finally:
            process.terminate()
            process.communicate(timeout=60)

    assert any("pgq_core.foreground" in argument for argument in arguments)
    assert arguments[-2:] == ["worker", "app.py"]
    assert not any(dsn in argument for argument in arguments)
    assert process.returncode == 0
