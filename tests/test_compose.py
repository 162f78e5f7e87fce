"""The compose file, as far as it can be judged without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return dict(compose["services"])


def test_workers_start_only_on_a_healthy_and_migrated_database(services: dict[str, Any]) -> None:
    assert "pg_isready" in services["postgres"]["healthcheck"]["test"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["worker"]["depends_on"] == {
        "postgres": {"condition": "service_healthy"},
        "migrate": {"condition": "service_completed_successfully"},
    }


def test_migration_runs_once(services: dict[str, Any]) -> None:
    assert services["migrate"]["command"] == ["migrate"]
    assert services["migrate"]["restart"] == "no"


def test_two_workers_get_longer_to_stop_than_their_grace(services: dict[str, Any]) -> None:
    worker = services["worker"]

    assert worker["command"][0] == "worker"
    assert worker["deploy"]["replicas"] == 2
    assert worker["stop_grace_period"] == "45s"


def test_database_is_published_on_loopback_only(services: dict[str, Any]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert published == ["127.0.0.1:${POSTGRES_PORT:-5432}:5432"]


def test_programs_and_database_agree_on_name_and_password(services: dict[str, Any]) -> None:
    database = services["postgres"]["environment"]
    address = f"postgresql://{database['POSTGRES_USER']}:{database['POSTGRES_PASSWORD']}@postgres:5432/{database['POSTGRES_DB']}"

    for name in ("migrate", "worker"):
        assert services[name]["environment"]["DATABASE_URL"] == address
        assert services[name]["build"] == "."


def test_data_is_kept_where_the_image_of_postgres_18_wants_it(services: dict[str, Any]) -> None:
    assert services["postgres"]["image"] == "postgres:18"
    assert services["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]


def test_image_does_not_run_as_root() -> None:
    instructions = (ROOT / "Dockerfile").read_text().splitlines()
    last_stage = max(number for number, line in enumerate(instructions) if line.startswith("FROM "))
    users = [line.split()[1] for line in instructions[last_stage:] if line.startswith("USER ")]

    assert users == ["pgq"]


def test_worker_finds_the_sample_handlers(services: dict[str, Any]) -> None:
    assert services["worker"]["volumes"] == ["${PGQ_APP_DIR:-./examples/first_steps}:/app:ro"]
    assert services["worker"]["command"][1:] == ["--app", "${PGQ_APP:-tasks.py}"]
