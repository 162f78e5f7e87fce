"""The recipes of docs/effects.md: whatever line a worker dies before, each job has its effect once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.effects.conftest import Payments
from tests.support.queue_database import FAULTS, QueueDatabase
from tests.support.waiting import eventually
from tests.support.worker_process import WorkerProcess

PAGE = Path(__file__).parents[2] / "docs" / "effects.md"
KILLER = "tests.effects.killer"

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


class Trial:
    """Jobs of one recipe, under each of which a worker dies once. The first one is left alone, to count steps."""

    def __init__(
        self, database: QueueDatabase, kills: Path, job_type: str, data_of: Callable[[int], dict[str, Any]]
    ) -> None:
        self.database = database
        self.kills = kills
        self.job_type = job_type
        self.data_of = data_of
        self.numbers: list[int] = []

    def put(self, kill_at: int | None, **columns: Any) -> int:
        number = len(self.numbers)
        self.numbers.append(number)
        data = {**self.data_of(number), "tag": f"{self.job_type}-{number}", "kill_at": kill_at}
        return self.database.put(self.job_type, data, **columns)

    def wait_until_done(self) -> None:
        eventually(lambda: not self.database.all("SELECT FROM jobs LIMIT 1"), timeout=500)

    def count_steps(self) -> int:
        self.put(None)
        self.wait_until_done()
        return int((self.kills / f"{self.job_type}-0.steps").read_text())

    def kill_at(self, steps: range) -> None:
        for step in steps:
            self.put(step, max_attempts=3)
        self.wait_until_done()
        assert len(list(self.kills.glob("*.killed"))) == len(steps)
        assert self.database.all("SELECT FROM dead_letter_jobs") == []
        assert self.database.all(FAULTS) == []


def run_trial(trial: Trial, tmp_path: Path, *, every_step: bool) -> None:
    worker = WorkerProcess(trial.database, tmp_path / "worker.log", apps=(KILLER,), concurrency=1)
    try:
        steps = trial.count_steps()
        trial.kill_at(range(1 if every_step else steps, steps + 1))
    except AssertionError as error:
        raise AssertionError(worker.text()) from error
    finally:
        worker.stop()


# The last step alone stands for the others by default: the work is done and its completion is not yet known.
EVERY_STEP = pytest.param(True, id="every step", marks=pytest.mark.slow)
LAST_STEP = pytest.param(False, id="last step")


@pytest.fixture
def kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "kills"
    directory.mkdir()
    monkeypatch.setenv("KILLS", str(directory))
    return directory


@pytest.mark.parametrize("every_step", [EVERY_STEP])
def test_money_is_moved_once_whenever_the_worker_dies(
    database: QueueDatabase, kills: Path, tmp_path: Path, every_step: bool
) -> None:
    database.run(
        "INSERT INTO public.accounts SELECT side || n, 0 FROM generate_series(0, 50) n, (VALUES ('a'), ('b')) s (side)"
    )
    trial = Trial(database, kills, "transfer", lambda n: {"from": f"a{n}", "to": f"b{n}", "amount": n + 1})

    run_trial(trial, tmp_path, every_step=every_step)

    for number in trial.numbers:
        rows = database.all(
            "SELECT balance FROM public.accounts WHERE name IN (%s, %s) ORDER BY name", f"a{number}", f"b{number}"
        )
        assert [row["balance"] for row in rows] == [-(number + 1), number + 1]


@pytest.mark.parametrize("every_step", [EVERY_STEP])
def test_a_file_is_there_once_and_whole_whenever_the_worker_dies(
    database: QueueDatabase, kills: Path, exports: Path, tmp_path: Path, every_step: bool
) -> None:
    lines = [["tea", 3], ["milk", 2]]
    trial = Trial(database, kills, "export", lambda n: {"customer": n, "month": 202601, "lines": lines})

    run_trial(trial, tmp_path, every_step=every_step)

    assert sorted(file.name for file in exports.iterdir()) == sorted(f"{n}-202601.csv" for n in trial.numbers)
    assert {file.read_text() for file in exports.iterdir()} == {"item,amount\ntea,3\nmilk,2\n"}


@pytest.mark.parametrize("every_step", [LAST_STEP, EVERY_STEP])
def test_a_card_is_charged_once_whenever_the_worker_dies(
    database: QueueDatabase, kills: Path, payments: Payments, tmp_path: Path, every_step: bool
) -> None:
    trial = Trial(database, kills, "charge", lambda n: {"card": f"card-{n}", "amount": 100 + n})

    run_trial(trial, tmp_path, every_step=every_step)

    assert sorted(payments.charges) == sorted((f"card-{n}", 100 + n) for n in trial.numbers)
    assert max(payments.requests.values()) == 2, "the service was asked again, and remembered"


@pytest.mark.slow
def test_a_replay_of_a_job_that_died_with_its_worker_charges_nothing_more(
    database: QueueDatabase, kills: Path, payments: Payments, tmp_path: Path
) -> None:
    trial = Trial(database, kills, "charge", lambda n: {"card": f"card-{n}", "amount": 100 + n})
    worker = WorkerProcess(database, tmp_path / "worker.log", apps=(KILLER,), concurrency=1)
    try:
        steps = trial.count_steps()
        job_id = trial.put(steps, max_attempts=1)
        letter = eventually(lambda: database.letter(job_id), timeout=60)
        assert letter is not None
        assert letter["reason"] == "crash_loop"
        replay_id = database.value("SELECT replay(%s)", letter["id"])
        trial.wait_until_done()
    finally:
        worker.stop()

    assert database.outcomes(replay_id) == ["succeeded"]
    assert payments.charges == [("card-0", 100), ("card-1", 101)]
    assert payments.requests[f"job-{job_id}"] == 2


def test_the_page_names_each_example_and_each_example_is_on_the_page() -> None:
    named = set(re.findall(r"examples/effects/(\w+\.py)", PAGE.read_text(encoding="utf-8")))

    assert named == {file.name for file in (PAGE.parents[1] / "examples" / "effects").glob("*.py")}
