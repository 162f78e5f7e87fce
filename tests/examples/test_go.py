"""The producer in Go, built and run where a toolchain is at hand."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import psycopg
import pytest

SOURCE = Path(__file__).parents[2] / "examples" / "go_producer" / "main.go"
PACKAGES = Path("/usr/share/gocode")

pytestmark = [pytest.mark.go, pytest.mark.system]


@pytest.fixture(scope="module")
def producer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed (Debian: apt-get install golang-go golang-github-lib-pq-dev)")
    if not (PACKAGES / "src" / "github.com" / "lib" / "pq").is_dir():
        pytest.skip("Go's driver is not installed (Debian: apt-get install golang-github-lib-pq-dev)")
    directory = tmp_path_factory.mktemp("go")
    program = directory / "producer"
    env = {
        **os.environ,
        "GO111MODULE": "off",  # Debian's packages are sources in a GOPATH
        "GOPATH": f"{directory / 'gopath'}:{PACKAGES}",
        "GOCACHE": str(directory / "cache"),
    }
    subprocess.run(["go", "build", "-o", program, SOURCE], env=env, check=True, timeout=170)
    return program


def test_order_and_job_are_committed_together_and_once(producer: Path, dsn: str) -> None:
    env = {**os.environ, "DATABASE_URL": dsn, "PGSSLMODE": "disable"}
    answer = subprocess.run([producer], env=env, capture_output=True, text=True, timeout=60, check=False)

    assert answer.returncode == 0, answer.stderr
    first, second = answer.stdout.split()
    assert first == second
    with psycopg.connect(dsn) as conn:
        assert conn.execute("SELECT number FROM public.orders").fetchall() == [("2026-0001",)]
        jobs = conn.execute("SELECT id::text, job_type, queue, payload -> 'data', idempotency_key FROM jobs").fetchall()
    assert jobs == [(first, "ship_order", "shipping", {"order": "2026-0001"}, "ship-2026-0001")]
