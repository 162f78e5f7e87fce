"""The side-by-side harness with the two entries that need nothing but this project, and the picture of its results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"

pytestmark = [pytest.mark.system, pytest.mark.slow]


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BENCH / script), *arguments], capture_output=True, text=True, timeout=170, check=False
    )


@pytest.fixture(scope="module")
def results(server_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("peers") / "results"
    done = run(
        "peers/run.py",
        *("--dsn", server_dsn, "--peers", "ours,ours-threads,bare", "--jobs", "100", "--rounds", "1"),
        *("--workers", "1", "--pickups", "5", "--settle", "0.5", "--out", str(prefix)),
    )
    assert done.returncode == 0, done.stderr
    return prefix.with_suffix(".json")


def test_every_job_of_every_entry_runs_once(results: Path) -> None:
    peers = json.loads(results.read_text())["peers"]

    assert set(peers) == {"ours", "ours-threads", "bare"}
    for name, peer in peers.items():
        (figures,) = peer["rounds"]
        assert peer["errors"] == [], name
        assert figures["drain 1w, handler runs/job"] == 1, name
        assert figures["drain 1w, rows inserted/job"] == pytest.approx(1, abs=0.05), name
        assert figures["drain 1w, jobs/s"] > 0, name


def test_steps_that_an_entry_leaves_out_are_not_measured(results: Path) -> None:
    peers = json.loads(results.read_text())["peers"]

    assert "pickup p50 from commit, ms" in peers["ours"]["rounds"][0]
    assert "pickup p50 from commit, ms" not in peers["bare"]["rounds"][0]
    assert "enqueue in bulk, jobs/s" not in peers["ours-threads"]["rounds"][0]


def test_table_names_conditions_and_options(results: Path) -> None:
    text = results.with_suffix(".md").read_text()

    assert "fsync off" in text  # the server of the tests does not sync, and the table says so
    assert "| drain 1w, jobs/s |" in text
    assert "kept: one row a run, written with its completion" in text


def test_picture_is_drawn_from_the_results(results: Path, tmp_path: Path) -> None:
    done = run("plot.py", str(results), str(tmp_path / "b.svg"))

    assert done.returncode == 0, done.stderr
    texts = [element.text for element in ET.parse(tmp_path / "b.svg").iter() if element.tag.endswith("text")]
    assert "Drain with 1 worker, jobs/s" in texts
    assert "bare psycopg, no queue" in texts


def test_peer_without_its_environment_is_left_out_and_named(server_dsn: str, tmp_path: Path) -> None:
    done = run(
        "peers/run.py",
        *("--dsn", server_dsn, "--envs", str(tmp_path), "--peers", "pgqueuer", "--out", str(tmp_path / "r")),
    )

    assert "LEFT OUT pgqueuer" in done.stderr
    assert "bench/peers/setup.sh pgqueuer makes it" in done.stderr


def test_every_entry_has_its_adapter_and_a_way_to_be_set_up() -> None:
    entries = json.loads((BENCH / "peers" / "peers.json").read_text())
    setup = (BENCH / "peers" / "setup.sh").read_text()

    for name, entry in entries.items():
        assert (BENCH / "peers" / "adapters" / entry["adapter"]).is_file(), name
        environment = entry.get("environment")
        assert environment is None or environment in setup, name
