"""The FastAPI application and the Django project of examples/, run as they are, and what the queue adds to them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase

EXAMPLES = Path(__file__).parents[2] / "examples"
FASTAPI = EXAMPLES / "fastapi_app"
DJANGO = EXAMPLES / "django_project"
MARK = "# pgq"

pytestmark = pytest.mark.system


class Project:
    """A directory in which programs run, with a database whose search path knows nothing of the queue."""

    def __init__(self, directory: Path, dsn: str) -> None:
        self.directory = directory
        self.database = QueueDatabase(dsn)
        self._env = {**os.environ, "DATABASE_URL": dsn, "PYTHONDONTWRITEBYTECODE": "1"}

    def python(self, *arguments: str) -> str:
        answer = subprocess.run(
            [sys.executable, *arguments],
            cwd=self.directory,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def work_off(self, app: str) -> None:
        self.python("-m", "pgq_core.cli", "worker", "--app", app, "--burst")

    def jobs(self) -> list[tuple[str, object]]:
        rows = self.database.all("SELECT job_type, payload -> 'data' AS data FROM pgq_core.jobs ORDER BY id")
        return [(row["job_type"], row["data"]) for row in rows]

    def outcomes(self) -> list[str]:
        return [row["outcome"] for row in self.database.all("SELECT outcome FROM pgq_core.job_runs ORDER BY id")]


@pytest.fixture
def dsn(server_dsn: str, template_database: str) -> Iterator[str]:
    with new_database(server_dsn, template=template_database) as address:
        yield address


DRAIN = """
from pgq_core.testing import QueueUnderTest
with QueueUnderTest(os.environ["DATABASE_URL"], schema="pgq_core") as queue:
    queue.drain(raise_errors=True)
"""
# A worker of its own is the real thing, and a second start of an interpreter and a framework.
WORKERS = [False, pytest.param(True, marks=pytest.mark.slow)]

FASTAPI_CLIENT = """
import os
from fastapi.testclient import TestClient
from main import app

with TestClient(app) as client:
    print([client.post("/customers", params={"email": "a@example.org"}).status_code for _ in range(2)])
"""


@pytest.mark.parametrize("has_worker", WORKERS)
def test_the_fastapi_application_commits_its_rows_with_their_jobs(dsn: str, has_worker: bool) -> None:
    project = Project(FASTAPI, dsn)

    answers = project.python("-c", FASTAPI_CLIENT + ("" if has_worker else DRAIN))

    assert answers.strip() == "[201, 409]"
    if has_worker:
        (customer,) = project.database.all("SELECT id, welcomed FROM public.customers")
        assert customer["welcomed"] is False
        assert project.jobs() == [("welcome", {"customer": customer["id"]})]
        project.work_off("tasks")
    assert project.outcomes() == ["succeeded"]
    assert project.database.value("SELECT welcomed FROM public.customers") is True
    project.database.close()


DJANGO_CLIENT = """
import os
os.environ["DJANGO_SETTINGS_MODULE"] = "shop.settings"
import django
django.setup()
from django.core.management import call_command
from django.test import Client

call_command("migrate", verbosity=0)
client = Client(raise_request_exception=False)
print([client.post("/customers", {"email": email}).status_code for email in ("a@example.org", "nonsense")])
"""


@pytest.mark.parametrize("has_worker", WORKERS)
def test_the_django_project_commits_its_rows_with_their_jobs(dsn: str, has_worker: bool) -> None:
    project = Project(DJANGO, dsn)

    answers = project.python("-c", DJANGO_CLIENT + ("" if has_worker else "import signup.tasks" + DRAIN))

    assert answers.strip() == "[201, 500]"
    if has_worker:
        (customer,) = project.database.all("SELECT id, welcomed FROM public.signup_customer")
        assert customer["welcomed"] is False
        assert project.jobs() == [("welcome", {"customer": customer["id"]})]
        project.work_off("signup.tasks")
    assert project.outcomes() == ["succeeded"]
    assert project.database.value("SELECT welcomed FROM public.signup_customer") is True
    project.database.close()


@pytest.mark.parametrize("directory", [FASTAPI, DJANGO], ids=["fastapi", "django"])
def test_an_integration_takes_fewer_than_fifteen_lines(directory: Path) -> None:
    marked = 0
    for file in sorted(directory.rglob("*.py")):
        lines = file.read_text(encoding="utf-8").splitlines()
        marked += sum(line.endswith(MARK) for line in lines)
        plain = "\n".join(line for line in lines if not line.endswith(MARK))
        compile(plain, str(file), "exec")
        code = re.sub(r'^""".*?"""', "", plain, count=1, flags=re.DOTALL)
        assert "pgq" not in code, f"{file} uses the queue in a line without the mark"

    assert 0 < marked < 15
