"""The API as a real process on loopback."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx

from pgq_core.api.app import create_app
from pgq_core.api.context import ApiContext
from pgq_core.api.settings import load_api_settings
from pgq_core.settings import load_settings
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
JSON_HEADERS = {"Content-Type": "application/json"}


class ApiProcess:
    """`pgq-core api` on a free port, its log in a file."""

    def __init__(self, dsn: str, log: Path, *arguments: str, **environment: str) -> None:
        self.log = log
        self.dsn = dsn
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pgq_core.cli", "api", "serve", "--port", "0", *arguments],
                cwd=ROOT,
                env={**os.environ, "DATABASE_URL": dsn, "PGQ_OPERATOR": "ops@test", **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            self.url = eventually(self._url, timeout=PATIENCE)
        except BaseException:
            self.kill()
            raise

    def events(self, name: str) -> list[dict[str, Any]]:
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if isinstance(event, dict) and event.get("event") == name:
                    found.append(event)
        return found

    def wait_until_ready(self) -> None:
        eventually(lambda: httpx.get(f"{self.url}/readyz", verify=False).status_code == 200, timeout=30)

    def stop(self, number: int = signal.SIGTERM, *, timeout: float = 60.0) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait(60)

    def _url(self) -> str | None:
        assert self.process.poll() is None, self.log.read_text(errors="replace")
        started = self.events("api_listening")
        return started[0]["url"] if started else None


@contextlib.contextmanager
def api_on(dsn: str, directory: Path, *arguments: str, ready: bool = True, **environment: str) -> Iterator[ApiProcess]:
    api = ApiProcess(dsn, directory / f"api-{os.urandom(3).hex()}.log", *arguments, **environment)
    try:
        if ready:
            api.wait_until_ready()
        yield api
        assert api.events("http_request_failed") == []
    finally:
        api.kill()


@contextlib.asynccontextmanager
async def in_process(dsn: str, *, read_only: bool = False, **api: Any) -> AsyncIterator[httpx.AsyncClient]:
    """The application without a process of its own, and without what runs in the background."""
    context = ApiContext(load_settings(dsn=dsn, read_only=read_only, operator="ops@test"), load_api_settings(**api))
    transport = httpx.ASGITransport(create_app(context))
    async with httpx.AsyncClient(verify=False, transport=transport, base_url="http://localhost", timeout=60) as client:
        try:
            yield client
        finally:
            for connections in (context.enqueueing, context.looking, context.bulk):
                await connections.close()


def is_problem(response: httpx.Response, status: int) -> bool:
    """Whether an answer has the form that every problem has; says what is wrong with it by failing."""
    assert response.status_code == status, (response.status_code, response.text[:500])
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == status
    assert problem["type"]
    assert problem["title"]
    assert problem["detail"]
    return True


def faulty_fields(response: httpx.Response) -> list[str]:
    assert is_problem(response, 422)
    return [error["field"] for error in response.json()["errors"]]
