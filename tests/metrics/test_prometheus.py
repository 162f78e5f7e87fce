"""A real Prometheus server reads what the API serves."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from tests.api.server import ApiProcess, api_on
from tests.metrics.test_server import free_port
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually

pytestmark = [pytest.mark.prometheus, pytest.mark.system]

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules.yml"


@pytest.fixture
def api(dsn: str, tmp_path: Path) -> Iterator[ApiProcess]:
    with api_on(dsn, tmp_path) as server:
        yield server


@pytest.fixture
def prometheus(api: ApiProcess, tmp_path: Path) -> Iterator[str]:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("Prometheus is not installed (Debian: apt-get install prometheus)")
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "pgq", "static_configs": [{"targets": [urlsplit(api.url).netloc]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    port = free_port()
    server = subprocess.Popen(
        [
            program,
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        eventually(lambda: _is_ready(url), timeout=60)
        yield url
    finally:
        server.terminate()
        server.wait(60)


def test_a_real_server_scrapes_every_sample(api: ApiProcess, prometheus: str, dsn: str, tmp_path: Path) -> None:
    database = QueueDatabase(dsn)
    for name in ("mails", 'a"b\\c', "a\nb", "ж"):
        database.put("a", queue=name)
    database.close()

    def target() -> dict[str, Any] | None:
        answer = httpx.get(f"{prometheus}/api/v1/targets", verify=False).json()["data"]["activeTargets"]
        return answer[0] if answer and answer[0]["health"] != "unknown" else None

    found = eventually(target, timeout=30, interval=0.2)
    assert found is not None
    assert (found["health"], found["lastError"]) == ("up", "")

    def depth(name: str) -> float | None:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        query = f'jobs_depth{{queue="{escaped}",status="pending"}}'
        result = httpx.get(f"{prometheus}/api/v1/query", verify=False, params={"query": query}).json()["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    for name in ("mails", 'a"b\\c', "a\nb", "ж"):
        assert eventually(lambda name=name: depth(name), timeout=30, interval=0.2) == 1.0  # type: ignore[misc]
    names = httpx.get(f"{prometheus}/api/v1/label/__name__/values", verify=False).json()["data"]
    assert {"jobs_processed_total", "job_duration_seconds_bucket", "job_wait_seconds_bucket", "database_up"} <= set(
        names
    )
    rules = httpx.get(f"{prometheus}/api/v1/rules", verify=False).json()["data"]["groups"][0]["rules"]
    assert {rule["health"] for rule in eventually(lambda: _evaluated(prometheus) or None, timeout=30)} == {"ok"}
    assert len(rules) == len(yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"])


def test_promtool_finds_no_fault_in_what_is_served(api: ApiProcess) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    eventually(
        lambda: "jobs_processed_total" in httpx.get(f"{api.url}/metrics", verify=False).text, timeout=20, interval=0.2
    )
    text = httpx.get(f"{api.url}/metrics", verify=False).text

    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def _evaluated(prometheus: str) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = httpx.get(f"{prometheus}/api/v1/rules", verify=False).json()["data"]["groups"][0][
        "rules"
    ]
    return rules if all(rule["health"] != "unknown" for rule in rules) else []


def _is_ready(url: str) -> bool:
    """It listens before it serves: until its own storage is open, everything is 503."""
    try:
        return httpx.get(f"{url}/-/ready", verify=False).status_code == 200
    except httpx.TransportError:
        return False
