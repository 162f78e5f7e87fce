"""The plugin as an application's tests find it: the example of docs/testing.md, run by a pytest of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import psycopg
import pytest

from pgq_core.testing.schemas import PREFIX, server_for_tests, session_schema

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
INSTALLED = {entry.name for entry in entry_points(group="pytest11")}
# In an environment that was set up before the plugin was part of the package it has to be named.
NAMED = [] if "pgq" in INSTALLED else ["-p", "pgq_core.testing.plugin"]
ASYNC_TEST = """
import pytest
from pgq_core import handler
from pgq_core.testing import AsyncQueueUnderTest

@handler("add")
async def add(data):
    return data["a"] + 1

@pytest.mark.asyncio
async def test_a_coroutine(pgq_async_queue: AsyncQueueUnderTest):
    assert pgq_async_queue.enqueued() == []
    await pgq_async_queue.enqueue("add", {"a": 1})
    assert [run.result for run in await pgq_async_queue.drain()] == [2]
    await pgq_async_queue.enqueue("add", {"a": 1})

@pytest.mark.asyncio
async def test_another_finds_it_empty(pgq_async_queue: AsyncQueueUnderTest):
    assert pgq_async_queue.enqueued() == []
"""


def schemas(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        found = conn.execute("SELECT nspname FROM pg_namespace WHERE starts_with(nspname, %s)", (PREFIX,))
        return [name for (name,) in found]


def test_the_example_of_the_page_passes(
    pytester: pytest.Pytester, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGQ_TEST_DSN", empty_dsn)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(test_shop=example, test_async=ASYNC_TEST)

    result = pytester.runpytest_subprocess(*NAMED, "-q", "-W", "error", timeout=120)

    result.assert_outcomes(passed=6)
    assert schemas(empty_dsn) == []


def test_the_plugin_is_an_entry_point_and_imports_nothing_before_it_is_used() -> None:
    project = (PAGE.parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\npgq = "pgq_core.testing.plugin"' in project

    code = "import sys, pgq_core.testing.plugin; sys.exit('pgq_core.worker' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_schemas_of_killed_sessions_are_dropped_and_those_in_use_are_not(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute(f"CREATE SCHEMA {PREFIX}1_dead".encode())

    with session_schema(empty_dsn) as first, session_schema(empty_dsn) as second:
        assert sorted(schemas(empty_dsn)) == sorted([first, second])

    assert schemas(empty_dsn) == []


@pytest.mark.slow
def test_without_an_address_an_embedded_server_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGQ_TEST_DSN", raising=False)

    with server_for_tests() as dsn, session_schema(dsn) as schema:
        assert schemas(dsn) == [schema]
