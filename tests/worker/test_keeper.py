"""A keeper inside the test, its runners real processes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from pgq_core.errors import DatabaseUnavailable
from pgq_core.settings import Settings, load_settings
from pgq_core.worker import ExitKind, Keeper, KeeperEvent, KeeperEventKind, RunnerSpec, RunnerState
from pgq_core.worker.handle import RunnerHandle
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually_async
from tests.support.worker_process import APP, ROOT, Workers

pytestmark = pytest.mark.system


@pytest.fixture
def settings(database: QueueDatabase) -> Settings:
    return load_settings(
        dsn=database.dsn, heartbeat=0.1, stale_limit=60, reaper_interval=0.1, poll=0.1, grace=3, db_schema="pgq_core"
    )


class Watched:
    """A keeper that remembers what it told."""

    def __init__(self, settings: Settings) -> None:
        self.events: list[KeeperEvent] = []
        self.lines: list[tuple[str, str]] = []
        self.keeper = Keeper(
            settings,
            host="testhost",
            on_event=self.events.append,
            on_output=lambda handle, stream, lines: self.lines.extend((stream, line) for line in lines),
        )

    def kinds(self, handle: RunnerHandle) -> list[KeeperEventKind]:
        return [event.kind for event in self.events if event.handle is handle]


@pytest.fixture
async def watched(settings: Settings) -> AsyncIterator[Watched]:
    watched = Watched(settings)
    await watched.keeper.open()
    yield watched
    await watched.keeper.close(at_once=True)


def spec(database: QueueDatabase, *apps: str, **fields: object) -> RunnerSpec:
    return RunnerSpec(
        apps=apps or (APP,),
        queues=("default=2", "other"),
        concurrency=2,
        cwd=str(ROOT),
        env={"LEDGER_DSN": database.dsn},
        **fields,  # type: ignore[arg-type]  # fields of the spec
    )


async def started(watched: Watched, spec: RunnerSpec) -> RunnerHandle:
    handle = await watched.keeper.start_runner(spec)
    await eventually_async(lambda: handle.state is RunnerState.RUNNING, timeout=30)
    return handle


async def test_runner_is_registered_beaten_for_and_recorded_at_its_end(
    database: QueueDatabase, watched: Watched
) -> None:
    handle = await started(watched, spec(database, pool="mail"))
    job_id = database.put("noop")
    await eventually_async(lambda: handle.finished == 1)

    row = await eventually_async(
        lambda: database.all("SELECT * FROM workers WHERE finished = 1 AND state = 'running'"), timeout=30
    )
    assert row[0]["id"] == handle.worker_id
    assert handle.worker_id.startswith("testhost-mail-")
    assert (row[0]["pid"], row[0]["queues"], row[0]["pool"]) == (handle.pid, ["default", "other"], "mail")
    assert "noop" in row[0]["job_types"]
    assert row[0]["rss_bytes"] > 1_000_000
    watched.keeper.drain(handle, "as the test says")
    ended = await handle.wait()
    await watched.keeper.settled()

    assert (ended.kind, ended.code, ended.reason) == (ExitKind.STOPPED, 0, "as the test says")
    assert watched.kinds(handle) == [
        KeeperEventKind.SPAWNED,
        KeeperEventKind.READY,
        KeeperEventKind.DRAINING,
        KeeperEventKind.EXITED,
    ]
    last = database.one("SELECT * FROM workers")
    assert (last["state"], last["exit_code"], last["exit_reason"]) == ("stopped", 0, "as the test says")
    assert database.outcomes(job_id) == ["succeeded"]
    announced = database.one("SELECT * FROM job_types WHERE name = 'bill'")
    assert announced["model"]["properties"].keys() == {"customer", "total"}


@pytest.mark.parametrize(
    "wanted", ["drain", *(pytest.param(word, marks=pytest.mark.slow) for word in ("restart", "stop"))]
)
async def test_operator_reaches_one_worker_through_its_row(
    database: QueueDatabase, watched: Watched, wanted: str
) -> None:
    handle = await started(watched, spec(database))

    database.run("UPDATE workers SET wanted = %s WHERE id = %s", wanted, handle.worker_id)
    database.run("SELECT pg_notify(wake_channel(), 'workers')")

    ended = await handle.wait()
    assert (ended.kind, ended.reason) == (ExitKind.STOPPED, f"{wanted} was asked for")
    assert KeeperEventKind.WANTED in watched.kinds(handle)


async def test_deleted_row_of_a_living_worker_is_there_again(database: QueueDatabase, watched: Watched) -> None:
    handle = await started(watched, spec(database))

    database.run("DELETE FROM workers")

    row = await eventually_async(lambda: database.all("SELECT * FROM workers WHERE state = 'running'"), timeout=30)
    assert row[0]["id"] == handle.worker_id
    assert handle.state is RunnerState.RUNNING


async def test_worker_that_was_taken_for_lost_is_fenced(database: QueueDatabase, watched: Watched) -> None:
    handle = await started(watched, spec(database))

    database.run("UPDATE workers SET state = 'lost', stopped_at = now()")

    ended = await handle.wait()
    await watched.keeper.settled()
    assert ended.kind is ExitKind.REPLACE
    assert ended.reason.startswith("fenced:")
    assert database.value("SELECT state FROM workers") == "lost"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("this is no python", "SyntaxError"),
        ("raise RuntimeError('cannot connect to the moon')", "cannot connect to the moon"),
        ("import sys; sys.exit(5)", "SystemExit"),
        ("x = 1", "registers no handler"),
    ],
)
async def test_application_that_cannot_be_loaded_says_why(
    database: QueueDatabase, watched: Watched, tmp_path: Path, source: str, words: str
) -> None:
    (tmp_path / "broken_app.py").write_text(source)

    handle = await watched.keeper.start_runner(spec(database, str(tmp_path / "broken_app.py")))
    ended = await handle.wait()

    assert ended.kind is ExitKind.REFUSED
    assert words in ended.reason
    assert any(words in line for line in ended.last_output)


async def test_startup_hook_that_fails_is_a_refusal(database: QueueDatabase, watched: Watched, tmp_path: Path) -> None:
    (tmp_path / "hook_app.py").write_text(
        "from pgq_core.handlers import handler, on_startup\n"
        "@handler('x')\ndef x(data): pass\n"
        "@on_startup\ndef start(resources): raise RuntimeError('no cache to be had')\n"
    )

    handle = await watched.keeper.start_runner(spec(database, str(tmp_path / "hook_app.py")))

    ended = await handle.wait()
    assert ended.kind is ExitKind.REFUSED
    assert "no cache to be had" in ended.reason


async def test_killed_runner_hands_its_job_back_unspent(database: QueueDatabase, watched: Watched) -> None:
    handle = await started(watched, spec(database))
    job_id = database.put("sleep", {"seconds": 60}, max_attempts=1)
    await eventually_async(lambda: handle.running == 1)

    watched.keeper.kill(handle)
    await handle.wait()
    await watched.keeper.settled()

    row = database.job(job_id)
    assert row is not None
    assert (row["status"], row["attempts"], row["suspect"]) == ("pending", 0, False)
    assert database.outcomes(job_id) == ["released"]


async def test_processes_that_a_job_left_behind_end_with_their_worker(
    database: QueueDatabase, watched: Watched, tmp_path: Path
) -> None:
    (tmp_path / "leaving_app.py").write_text(
        "import subprocess, pathlib\nfrom pgq_core.handlers import handler\n"
        "@handler('leave')\ndef leave(data):\n"
        "    child = subprocess.Popen(['bash', '-c', 'sleep 1000 & sleep 1000'])\n"
        f"    pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(child.pid))\n"
    )
    handle = await started(watched, spec(database, str(tmp_path / "leaving_app.py")))
    job_id = database.put("leave")
    await eventually_async(lambda: database.outcomes(job_id) == ["succeeded"])
    pid = int((tmp_path / "pid").read_text())
    assert not _is_gone(pid)

    watched.keeper.drain(handle)
    await handle.wait()

    await eventually_async(lambda: _is_gone(pid))


def _is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


async def test_lines_of_a_runner_reach_its_owner(database: QueueDatabase, watched: Watched) -> None:
    handle = await started(watched, spec(database))
    job_id = database.put("print", {"lines": 3, "length": 5})
    await eventually_async(lambda: database.outcomes(job_id) == ["succeeded"])

    await eventually_async(lambda: watched.lines.count(("out", "xxxxx")) == 3)
    assert watched.lines.count(("err", "yyyyy")) == 3
    assert "xxxxx" in handle.recent_output
    assert len(handle.recent_output) <= 20


async def test_nothing_is_started_while_a_worker_cannot_be_registered(settings: Settings) -> None:
    away = settings.model_copy(update={"dsn": "postgresql://127.0.0.1:1/nowhere"})
    keeper = Keeper(away)
    await keeper.open()

    with pytest.raises(DatabaseUnavailable):
        await keeper.start_runner(RunnerSpec(("x",), ("default",), 1))

    assert keeper.handles == ()
    await keeper.close()


def test_worker_with_an_unknown_application_says_so_and_ends(database: QueueDatabase, workers: Workers) -> None:
    worker = workers.start(ready=False, apps=("no_such_module",))

    assert worker.process.wait(30) == 1
    assert "no_such_module" in worker.text()
    assert database.value("SELECT state FROM workers") == "crashed"


def test_worker_on_an_empty_database_says_what_to_run(empty_dsn: str, tmp_path: Path) -> None:
    database = QueueDatabase(empty_dsn)
    workers = Workers(database, tmp_path)

    worker = workers.start(ready=False)

    assert worker.process.wait(30) == 3
    assert "pgq-core migrate" in worker.text()
    database.close()


def test_worker_is_started_anew_when_a_source_file_changes(database: QueueDatabase, tmp_path: Path) -> None:
    import subprocess
    import sys

    from tests.support.waiting import eventually
    from tests.support.worker_process import FAST

    app = tmp_path / "living_app.py"
    source = "from pgq_core.handlers import handler\n@handler('say')\nasync def say(data): return {!r}\n"
    app.write_text(source.format("first"))
    program = (
        "import sys; from pgq_core.settings import load_settings; from pgq_core.worker import *;"
        "sys.exit(run_worker(WorkerOptions(load_settings(), ('living_app',), reload=True)))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, **FAST, "DATABASE_URL": database.dsn, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        first = database.put("say")
        eventually(lambda: database.outcomes(first) == ["succeeded"], timeout=30)
        app.write_text(source.format("the second version"))
        eventually(
            lambda: (
                database.value("SELECT count(*) FROM workers WHERE state = 'running'") == 1
                and database.value("SELECT count(*) FROM workers") == 2
            ),
            timeout=30,
        )
        second = database.put("say")
        eventually(lambda: database.outcomes(second) == ["succeeded"], timeout=30)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert database.runs(first)[0]["result"] == "first"
    assert database.runs(second)[0]["result"] == "the second version"
