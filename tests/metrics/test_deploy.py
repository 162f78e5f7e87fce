"""The files in `deploy/` speak of metrics that exist, and of nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from pgq_core.metrics.service import MetricsService
from pgq_core.settings import load_settings
from tests.metrics.samples import samples
from tests.support.queue_database import QueueDatabase

DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana" / "pgq.json").read_text(encoding="utf-8"))
RULES: list[dict[str, str]] = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text(encoding="utf-8"))[
    "groups"
][0]["rules"]
DOCUMENTED = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")

_HTTP = {"http_requests_total", "http_request_seconds_bucket"}
_WORDS = re.compile(r"\b[a-z][a-z0-9_]*\b(?!\s*[(=!~:])")
_LANGUAGE = {"by", "without", "on", "unless", "and", "queue", "result", "status", "instance", "le", "m", "loop"}


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def metric_names(expression: str) -> set[str]:
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\{[^}]*\}', " ", expression)
    bare = re.sub(r"\b(by|without|on) \([^)]*\)", " ", bare)
    return {word for word in _WORDS.findall(bare) if word not in _LANGUAGE and ":" not in word and len(word) > 2}


@pytest.fixture
async def served(dsn: str) -> set[str]:
    database = QueueDatabase(dsn)
    database.put("a")
    database.run(
        "INSERT INTO leases (name, holder, expires_at, loops) "
        """VALUES ('maintenance', 'one', now() + '1 h'::interval, '{"reaper": {"age": 1, "limit": 60}}')"""
    )
    database.close()
    service = MetricsService(load_settings(dsn=dsn))
    await service.run_once()
    await service.stopped()
    return {name for name, _ in samples(service.exposition())} | _HTTP


async def test_rules_and_dashboard_use_metrics_that_are_served(served: set[str]) -> None:
    recorded = {part for rule in RULES if "record" in rule for part in rule["record"].split(":")}
    used = {name for expression in expressions() for name in metric_names(expression)} - recorded

    assert len(used) > 10
    assert used - served == set()


async def test_every_metric_that_is_served_is_documented(served: set[str]) -> None:
    names = {re.sub(r"_(bucket|sum|count)$", "", name) for name in served if not name.startswith("process_")}

    assert {name for name in names if f"`{name}" not in DOCUMENTED} == set()


def test_every_alert_says_what_happened_and_how_bad_it_is() -> None:
    alerts = [rule for rule in RULES if "alert" in rule]

    assert len(alerts) >= 8
    for alert in alerts:
        assert alert["labels"]["severity"] in ("warning", "critical")  # type: ignore[index]  # a mapping
        assert set(alert["annotations"]) == {"summary", "description"}


def test_panels_do_not_overlap_and_have_ids_of_their_own() -> None:
    taken = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


@pytest.mark.prometheus
def test_promtool_finds_no_fault(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    panels = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    rules = [
        {"record": f"panel:{number}", "expr": expr.replace("$__rate_interval", "5m").replace("$queue", ".*")}
        for number, expr in enumerate(panels)
    ]
    of_panels = tmp_path / "panels.yml"
    of_panels.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    directory = DEPLOY / "prometheus"

    for arguments in (
        ["check", "config", str(directory / "prometheus.yml")],
        ["check", "rules", str(directory / "rules.yml"), str(of_panels)],
        ["test", "rules", str(directory / "rules_test.yml")],
    ):
        done = subprocess.run([promtool, *arguments], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
