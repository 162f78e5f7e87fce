"""The command line in this process, and as a program of its own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import pytest
from psycopg import AsyncConnection
from typer.testing import CliRunner

from pgq_core.cli import app
from pgq_core.database import connect

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli(Protocol):
    def __call__(self, *args: object, stdin: str | bytes | None = None) -> Answer: ...


@pytest.fixture
def cli(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Calls `pgq-core` in this process, on the test's own database, without a terminal."""
    monkeypatch.setenv("DATABASE_URL", dsn)
    monkeypatch.setenv("PGQ_OPERATOR", "ops@test")

    def call(*args: object, stdin: str | bytes | None = None) -> Answer:
        result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def arrange(dsn: str) -> Callable[[Callable[..., Awaitable[Any]]], Any]:
    """Runs a coroutine function of the zoo on a connection to the test's database."""

    def run(work: Callable[..., Awaitable[T]], *args: object, **given: object) -> T:
        async def connected() -> T:
            conn: AsyncConnection[Any] = await connect(dsn, application_name="arrange")
            try:
                return await work(conn, *args, **given)
            finally:
                await conn.close()

        return asyncio.run(connected())

    return run


class Program(Protocol):
    def __call__(self, *args: object, stdin: str | None = None, env: dict[str, str | None] | None = None) -> Answer: ...


@pytest.fixture
def program(dsn: str) -> Program:
    """Calls `pgq-core` as a process. `env` values of None are removed."""

    def call(*args: object, stdin: str | None = None, env: dict[str, str | None] | None = None) -> Answer:
        environment: dict[str, str | None] = {**os.environ, "DATABASE_URL": dsn, **(env or {})}
        done = subprocess.run(
            [sys.executable, "-m", "pgq_core.cli", *(str(arg) for arg in args)],
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
            env={name: value for name, value in environment.items() if value is not None},
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call
