"""The README's block "On your own PostgreSQL" and the examples, run as a reader would run them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgq_core.embedded import EmbeddedServer
from pgq_core.embedded.binaries import find_binaries
from tests.support.waiting import eventually

PROJECT = Path(__file__).parents[2]
EXAMPLES = PROJECT / "examples"
DATABASE = "jobs_demo"

pytestmark = pytest.mark.system


def own_postgresql_block() -> str:
    """The shell block under the heading, word for word."""
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^## On your own PostgreSQL\n.*?^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@dataclass(frozen=True)
class Reader:
    """Somebody in a shell whose PostgreSQL answers at localhost."""

    env: dict[str, str]
    url: str

    def run(self, *command: str, cwd: Path) -> list[str]:
        answer = subprocess.run(command, cwd=cwd, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.splitlines()

    def python(self, script: Path) -> list[str]:
        return self.run(sys.executable, script.name, cwd=script.parent)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as conn:
            return conn.execute(statement).fetchall()


@pytest.fixture
def reader(server_dsn: str, home: Path) -> Iterator[Reader]:
    """Where the server listens is said by libpq's own variables, as on a machine whose server has another port."""
    given = os.environ.get("PGQ_TEST_DSN")
    address = conninfo_to_dict(given or EmbeddedServer("tests", home).status().tcp_url or "")
    if not str(address.get("host", "")).startswith(("127.", "localhost")):
        pytest.skip("the test server does not answer at localhost")
    programs = [str(Path(sys.executable).parent), str(find_binaries().directory / "bin"), os.environ["PATH"]]
    variables = {"port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}
    env = {
        **os.environ,
        **{variable: str(address[name]) for name, variable in variables.items() if address.get(name)},
        "PGHOST": "localhost",
        "PGHOSTADDR": "127.0.0.1",
        "PATH": os.pathsep.join(programs),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DATABASE_URL": f"postgresql://localhost/{DATABASE}",
    }
    url = psycopg.conninfo.make_conninfo(server_dsn, dbname=DATABASE)
    drop_database(server_dsn)
    yield Reader(env, url)
    drop_database(server_dsn)


def drop_database(server_dsn: str) -> None:
    with psycopg.connect(server_dsn, autocommit=True) as conn:
        conn.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)".encode())


@pytest.fixture
def worker(reader: Reader, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The README's block in one shell; its last line is a worker that stays."""
    env = {name: value for name, value in reader.env.items() if name != "DATABASE_URL"}
    with (tmp_path / "block.log").open("wb") as log:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", own_postgresql_block()],
            cwd=EXAMPLES / "first_steps",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield shell
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGTERM)
            shell.wait(30)


def worker_is_ready(reader: Reader, shell: subprocess.Popen[bytes], log: Path) -> bool:
    assert shell.poll() is None, log.read_text()
    try:
        return reader.rows("SELECT 1 FROM public.workers WHERE state = 'running'") == [(1,)]
    except (psycopg.OperationalError, psycopg.errors.UndefinedTable):
        return False


def test_readme_block_and_first_steps_do_what_they_say(
    reader: Reader, worker: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    eventually(lambda: worker_is_ready(reader, worker, tmp_path / "block.log"), timeout=60)

    first, second = (
        reader.python(EXAMPLES / "first_steps/producer.py"),
        reader.python(EXAMPLES / "first_steps/producer.py"),
    )
    reader.python(EXAMPLES / "first_steps/demo.py")

    assert first[0] == second[0].replace("known", "new")
    assert second[0].endswith("known")
    eventually(lambda: reader.rows("SELECT count(*) FROM jobs") == [(0,)], timeout=60)
    dead = reader.rows("SELECT queue, job_type, attempts, max_attempts, last_error FROM dead_letter_jobs ORDER BY id")
    assert [row[:4] for row in dead] == [("default", "flaky", 3, 3)] * 3
    assert all("simulated transient failure" in row[4] for row in dead)
    runs = reader.rows("SELECT job_type, outcome, count(*) FROM job_runs GROUP BY 1, 2 ORDER BY 1, 2")
    assert runs == [
        ("flaky", "dead", 3),
        ("flaky", "retried", 6),
        ("resize_image", "succeeded", 2),
        ("send_email", "succeeded", 2),
    ]
    words = (tmp_path / "block.log").read_text()
    assert "sent an email to a@example.org: Welcome!" in words

    os.killpg(worker.pid, signal.SIGTERM)
    worker.wait(30)
    assert reader.rows("SELECT state FROM workers") == [("stopped",)]


def test_plain_insert_answers_an_id_and_then_nothing(reader: Reader) -> None:
    reader.run("createdb", DATABASE, cwd=PROJECT)
    reader.run("pgq-core", "migrate", "--schema", "public", cwd=PROJECT)

    assert reader.python(EXAMPLES / "plain_sql/producer.py") == ["1", "None"]
    shell = [reader.run("./enqueue.sh", cwd=EXAMPLES / "plain_sql") for _ in range(2)]

    assert [len(lines) for lines in shell] == [1, 0]
    assert reader.rows("SELECT idempotency_key, job_type FROM jobs ORDER BY id") == [
        ("plain-1", "send_email"),
        ("shell-1", "send_email"),
    ]
