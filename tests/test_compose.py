"""The compose file and the image, as far as they can be judged without an engine."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pgq_core.cli.root import app as pgq_core
from pgq_tui.supervisor.definitions import load_pools

ROOT = Path(__file__).parent.parent
OURS = {"migrate", "api", "worker", "supervisor"}
SERVICE_KEYS = {
    *("build", "cap_drop", "command", "depends_on", "deploy", "entrypoint", "environment", "healthcheck", "hostname"),
    *("image", "init", "ports", "profiles", "restart", "security_opt", "shm_size", "stop_grace_period", "volumes"),
}
HEALTH_KEYS = {"test", "interval", "timeout", "retries", "start_period", "disable"}
CONDITIONS = {"service_healthy", "service_completed_successfully", "service_started"}
DURATION = re.compile(r"(\d+(us|ms|s|m|h))+")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.load((ROOT / "docker-compose.yml").read_text(), Loader=StrictLoader))


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    return dict(compose["services"])


class StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice, as Compose does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


def test_nothing_in_it_is_unknown_to_compose(compose: dict[str, Any], services: dict[str, Any]) -> None:
    """The shapes of the Compose specification, for the part of it that is used here."""
    assert {key for key in compose if not key.startswith("x-")} == {"name", "services", "volumes"}
    assert set(services) == OURS | {"postgres", "prometheus", "grafana"}
    for name, service in services.items():
        assert set(service) <= SERVICE_KEYS, name
        assert all(isinstance(part, str) for part in service.get("command", [])), name
        environment = service.get("environment", {})
        assert all(isinstance(value, str) for value in environment.values()), name
        check = service.get("healthcheck", {})
        assert set(check) <= HEALTH_KEYS, name
        assert check.get("disable") or not check or check["test"][0] in ("CMD", "CMD-SHELL"), name
        spans = [check[key] for key in ("interval", "timeout", "start_period") if key in check]
        spans += [service[key] for key in ("stop_grace_period",) if key in service]
        assert all(DURATION.fullmatch(span) for span in spans), name
        assert service["restart"] in ("no", "always", "on-failure", "unless-stopped"), name
        for other, how in service.get("depends_on", {}).items():
            assert other in services, name
            assert set(how) == {"condition"}, name
            assert how["condition"] in CONDITIONS, name


def test_what_is_waited_for_as_healthy_has_a_health_check(services: dict[str, Any]) -> None:
    from_image = {name for name, service in services.items() if "build" in service} - {"migrate"}
    checked = from_image | {name for name, service in services.items() if "test" in service.get("healthcheck", {})}

    assert {"postgres", "api", "worker", "supervisor", "prometheus", "grafana"} == checked
    for service in services.values():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] != "service_healthy" or other in checked


def test_every_image_is_pinned(services: dict[str, Any]) -> None:
    for name, service in services.items():
        assert re.search(r":v?\d+(\.\d+)+$", service["image"]), name
    bases = [line.split()[1] for line in dockerfile() if line.startswith("FROM ")]
    assert all(re.search(r":\d+\.\d+\.\d+-slim", base) for base in bases), bases


def test_every_mounted_file_is_there_and_every_volume_is_declared(
    compose: dict[str, Any], services: dict[str, Any]
) -> None:
    named = set()
    for service in services.values():
        for volume in service.get("volumes", []):
            source = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", volume).partition(":")[0]
            if source.startswith("."):
                assert (ROOT / source).exists(), source
                assert volume.endswith(":ro"), volume
            else:
                named.add(source)
    assert named == set(compose["volumes"])


def test_programs_start_only_on_a_healthy_and_migrated_database(services: dict[str, Any]) -> None:
    assert "pg_isready" in services["postgres"]["healthcheck"]["test"]
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in OURS - {"migrate"}:
        assert services[name]["depends_on"] == {
            "postgres": {"condition": "service_healthy"},
            "migrate": {"condition": "service_completed_successfully"},
        }


def test_migration_runs_once(services: dict[str, Any]) -> None:
    assert services["migrate"]["command"] == ["migrate"]
    assert services["migrate"]["restart"] == "no"


def test_two_workers_and_everything_of_ours_gets_longer_to_stop_than_its_grace(services: dict[str, Any]) -> None:
    assert services["worker"]["deploy"]["replicas"] == 2
    assert {services[name]["stop_grace_period"] for name in OURS - {"migrate"}} == {"45s"}
    assert services["supervisor"]["profiles"] == ["supervisor"]


@pytest.mark.parametrize("name", sorted(OURS - {"supervisor"}))
def test_commands_and_their_options_exist(services: dict[str, Any], name: str) -> None:
    words = list(services[name]["command"])
    command = [word for word in words[:2] if not word.startswith("-")]

    shown = CliRunner().invoke(pgq_core, [*command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})

    assert shown.exit_code == 0, shlex.join(command)
    assert [word for word in words if word.startswith("--") and word not in shown.output] == []


def test_the_supervisor_s_pools_are_readable_and_run_what_is_mounted(services: dict[str, Any]) -> None:
    assert services["supervisor"]["entrypoint"] == ["pgq-tui"]
    assert services["supervisor"]["command"][0] == "supervise"
    assert "./deploy/compose/pools.toml:/etc/pgq/pools.toml:ro" in services["supervisor"]["volumes"]

    pools = load_pools(ROOT / "deploy" / "compose" / "pools.toml")

    assert [(pool.name, pool.app, str(pool.cwd), pool.wanted) for pool in pools] == [("default", "tasks.py", "/app", 2)]


def test_everything_is_published_on_loopback_only(services: dict[str, Any]) -> None:
    published = [port for service in services.values() for port in service.get("ports", [])]

    assert published == [
        "127.0.0.1:${POSTGRES_PORT:-5432}:5432",
        "127.0.0.1:${API_PORT:-8080}:8080",
        "127.0.0.1:${PROMETHEUS_PORT:-9090}:9090",
        "127.0.0.1:${GRAFANA_PORT:-3000}:3000",
    ]


def test_programs_and_database_agree_on_name_and_password(services: dict[str, Any]) -> None:
    database = services["postgres"]["environment"]
    user, password, name = (database[f"POSTGRES_{part}"] for part in ("USER", "PASSWORD", "DB"))

    for program in OURS:
        assert (
            services[program]["environment"]["DATABASE_URL"] == f"postgresql://{user}:{password}@postgres:5432/{name}"
        )
        assert services[program]["build"] == "."


def test_no_password_but_that_of_the_demonstration_is_written_down(services: dict[str, Any]) -> None:
    secrets = [
        value
        for service in services.values()
        for key, value in service.get("environment", {}).items()
        if re.search("PASSWORD|SECRET|TOKEN", key)
    ]

    assert secrets
    assert {re.sub(r"^\$\{\w+_PASSWORD:-(.*)\}$", r"\1", value) for value in secrets} == {"pgq"}


def test_data_is_kept_where_the_image_of_postgres_18_wants_it(services: dict[str, Any]) -> None:
    assert services["postgres"]["image"].startswith("postgres:18.")
    assert services["postgres"]["volumes"] == ["postgres:/var/lib/postgresql"]


def test_prometheus_scrapes_the_api_by_a_name_that_it_answers_to(services: dict[str, Any]) -> None:
    config = yaml.safe_load((ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text())
    (target,) = config["scrape_configs"][0]["static_configs"][0]["targets"]
    host, port = target.split(":")
    command = services["api"]["command"]

    assert services["api"]["ports"][0].endswith(f":{port}")
    assert command[command.index("--allow-host") + 1] == host == "api"
    assert "--open-metrics" in command
    assert "./deploy/prometheus:/etc/prometheus:ro" in services["prometheus"]["volumes"]


def test_grafana_finds_its_data_and_its_dashboard(services: dict[str, Any]) -> None:
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())["datasources"]
    (provider,) = yaml.safe_load((provisioning / "dashboards" / "pgq.yml").read_text())["providers"]

    assert source["url"] == "http://prometheus:9090"
    assert f"./deploy/grafana/pgq.json:{provider['options']['path']}/pgq.json:ro" in services["grafana"]["volumes"]


def test_worker_finds_the_sample_handlers(services: dict[str, Any]) -> None:
    for name in ("worker", "supervisor"):
        assert services[name]["volumes"][0] == "${PGQ_APP_DIR:-./examples/first_steps}:/app:ro"
    assert services["worker"]["command"][1:3] == ["--app", "${PGQ_APP:-tasks.py}"]


def dockerfile() -> list[str]:
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_image_is_made_in_two_stages_and_does_not_run_as_root() -> None:
    instructions = dockerfile()
    starts = [number for number, line in enumerate(instructions) if line.startswith("FROM ")]
    last = [line.split(maxsplit=1) for line in instructions[starts[-1] :]]

    assert len(starts) == 2
    assert [words for kind, words in last if kind == "USER"] == ["pgq"]
    assert [words for kind, words in last if kind == "STOPSIGNAL"] == ["SIGTERM"]
    assert not [words for kind, words in last if kind == "RUN" and "pip" in words]


def test_image_is_healthy_when_its_address_answers(services: dict[str, Any]) -> None:
    (check,) = [line for line in dockerfile() if line.startswith("HEALTHCHECK ")]
    environment = " ".join(line for line in dockerfile() if line.startswith("ENV "))

    assert "HEALTH_URL=http://127.0.0.1:8080/readyz" in environment
    assert "os.environ['HEALTH_URL']" in check
    for name in ("worker", "supervisor"):
        port = services[name]["command"][-1]
        assert services[name]["environment"]["HEALTH_URL"] == f"http://127.0.0.1:{port}/metrics"


def test_everything_that_the_image_is_built_from_is_sent_to_the_engine() -> None:
    sent = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}

    assert {"pgq_core", "pgq_tui", "pyproject.toml", "requirements.lock", "README.md", "LICENSE"} <= sent
