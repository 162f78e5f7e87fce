"""Behind a proxy with TLS: what it says of its clients counts, and what anybody else says does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.api.server import ApiProcess, api_on, is_problem

ONE_IN_MANY_SECONDS = "0.005"
FORWARDED = {"X-Forwarded-Proto": "https", "Host": "jobs.example.org"}


@pytest.fixture(scope="module")
def proxied(api_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    flags = ("--require-tokens", "--allow-host", "jobs.example.org", "--proxy", "127.0.0.1")
    with api_on(api_dsn, tmp_path_factory.mktemp("api"), *flags, PGQ_API_RATE=ONE_IN_MANY_SECONDS) as server:
        yield server


def ask(server: ApiProcess, client: str) -> httpx.Response:
    headers = {**FORWARDED, "X-Forwarded-For": client}
    return httpx.get(f"{server.url}/ui/login", headers=headers, verify=False, timeout=60)


def test_cookies_are_for_https_alone_where_the_proxy_speaks_it(proxied: ApiProcess) -> None:
    cookie = ask(proxied, "10.0.0.1").headers["set-cookie"]

    assert "secure" in cookie.lower()
    assert "httponly" in cookie.lower()
    assert "samesite" in cookie.lower()


def test_limits_are_per_client_of_the_proxy(proxied: ApiProcess) -> None:
    assert [ask(proxied, "10.0.0.2").status_code for _ in range(2)] == [200, 429]
    assert ask(proxied, "10.0.0.3").status_code == 200


def test_who_is_no_proxy_is_not_believed(api_dsn: str, tmp_path: Path) -> None:
    flags = ("--require-tokens", "--allow-host", "jobs.example.org")
    with api_on(api_dsn, tmp_path, *flags, PGQ_API_RATE=ONE_IN_MANY_SECONDS) as server:
        first, second = ask(server, "10.0.0.4"), ask(server, "10.0.0.5")

    assert "secure" not in first.headers["set-cookie"].lower()
    assert is_problem(second, 429)
    assert int(second.headers["retry-after"]) > 100
