"""What needs attention: each rule on the smallest picture that breaks it, and silence when all is well."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from pgq_core.domain.health import LoopHealth
from pgq_core.domain.snapshot import (
    Count,
    Overview,
    PoolView,
    QueueView,
    ServerView,
    StatsPoint,
    SupervisorView,
    WorkerView,
)
from pgq_tui.messages import GoTo
from pgq_tui.pictures import NOW, Shop, busy_shop
from pgq_tui.view_model.attention import Severity, needs_attention
from pgq_tui.view_model.detail import detail_plain
from pgq_tui.view_model.palette import PLAIN
from pgq_tui.view_model.worker_detail import worker_detail
from pgq_tui.widgets.row_table import RowTable
from tests.console.stage import FakeBackend, burst, console, settle, shows

SERVER = ServerView("18.6", "jobs", "app", "db", 0.001, False)
WORKER = WorkerView(
    id="h-mail-1",
    host="h",
    pid=1,
    pool="mail",
    supervisor_id="s",
    queues=("emails",),
    job_types=("send",),
    concurrency=4,
    state="running",
    wanted="run",
    started_at=NOW,
    heartbeat_at=NOW,
    stopped_at=None,
    exit_code=None,
    exit_signal=None,
    exit_reason=None,
    running=0,
    finished=0,
    failed=0,
    late_writes=0,
    cpu_percent=None,
    rss_bytes=None,
    is_stale=False,
)
POOL = PoolView("h", "mail", ("emails",), 4, 1, 0, 9, "ok", None, None, 0, 1, 0, True)
SUPERVISOR = SupervisorView("h", "s", 7, ("mail",), NOW, NOW, False, False)
QUEUE = QueueView("emails", pending=Count(5), running=1, capacity=4, rate_out=1.0, failure_share=0.01)
WELL = Overview(NOW, SERVER, (QUEUE,), (WORKER,), (POOL,), (SUPERVISOR,))


def test_a_healthy_system_needs_nobody() -> None:
    assert needs_attention(WELL) == []


def ago(**parts: float) -> datetime:
    return NOW - timedelta(**parts)


def queues(**changes: Any) -> Overview:
    return replace(WELL, queues=(replace(QUEUE, **changes),))


def pools(**changes: Any) -> Overview:
    return replace(WELL, pools=(replace(POOL, **changes),))


def workers(**changes: Any) -> Overview:
    return replace(WELL, workers=(WORKER, replace(WORKER, id="h-mail-2", **changes)))


CRITICAL, WARNING, NOTICE = Severity.CRITICAL, Severity.WARNING, Severity.NOTICE
PAUSED = queues(paused=True, paused_at=ago(minutes=9), paused_by="ada", pause_reason="x")
DEATHS = replace(WELL, throughput=(StatsPoint(ago(minutes=1), 5.0, dead=3),), dead_unresolved=Count(12))
CRASH_LOOP = pools(state="crash_loop", state_detail="SIGSEGV", retry_at=NOW + timedelta(seconds=30))
CRASHED = workers(state="crashed", stopped_at=ago(seconds=5), exit_reason="SIGKILL")
SILENT = replace(WELL, supervisors=(replace(SUPERVISOR, is_stale=True, heartbeat_at=ago(minutes=2)),))
HELD = replace(WELL, holder_age=3600.0, holder="pid 88 (psql)")
BROKEN = [
    (replace(WELL, server=replace(SERVER, is_read_only=True)), "database", CRITICAL, "dash", "takes no writes"),
    (queues(failure_share=0.41, last_error="timeout"), "emails", CRITICAL, "queues", "41.0% fail: timeout"),
    (PAUSED, "emails", WARNING, "queues", 'paused 9m by ada, 5 jobs waiting, "x"'),
    (replace(WELL, workers=()), "emails", CRITICAL, "queues", "no worker serves it, 5 jobs waiting"),
    (queues(unknown_types=("bill",)), "emails", WARNING, "queues", "no worker knows bill"),
    (queues(oldest_pending_at=ago(minutes=6)), "emails", WARNING, "queues", "oldest waits 6m, 5 jobs pending"),
    (DEATHS, "dead letters", WARNING, "dead", "+3 in the last 1m, 12 unresolved"),
    (CRASH_LOOP, "pool mail", CRITICAL, "workers", "crash loop, next try in 30s: SIGSEGV"),
    (pools(state="refused", state_detail="no app"), "pool mail", CRITICAL, "workers", "refused by its host: no app"),
    (pools(wanted=3), "pool mail", NOTICE, "workers", "has 1 of 3 wanted workers"),
    (pools(wanted=3, has_supervisor=False), "pool mail", CRITICAL, "workers", "start pgq-tui supervise on h"),
    (workers(is_stale=True, heartbeat_at=ago(seconds=50)), "worker mail-2", CRITICAL, "workers", "heartbeat for 50s"),
    (CRASHED, "worker mail-2", WARNING, "workers", "crashed 5s ago: SIGKILL"),
    (SILENT, "supervisor h", WARNING, "workers", "silent for 2m"),
    (HELD, "old transaction", WARNING, "dash", "pid 88 (psql) holds back vacuum for 1h"),
]


@pytest.mark.parametrize(
    ("view", "subject", "severity", "screen", "words"), BROKEN, ids=[case[4][:30] for case in BROKEN]
)
def test_what_is_wrong_is_named_with_its_place(
    view: Overview, subject: str, severity: Severity, screen: str, words: str
) -> None:
    found = [one for one in needs_attention(view) if one.subject == subject and words in one.text]

    assert [(one.severity, one.screen) for one in found] == [(severity, screen)]


def test_the_worst_comes_first() -> None:
    queues = (replace(QUEUE, name="a", unknown_types=("x",)), replace(QUEUE, name="b", failure_share=0.9))

    found = needs_attention(replace(WELL, queues=queues, workers=(replace(WORKER, queues=("a", "b")),)))

    assert [one.severity for one in found] == sorted((one.severity for one in found), reverse=True)


def test_a_paused_queue_is_not_also_called_slow_or_failing() -> None:
    queue = replace(QUEUE, paused=True, failure_share=0.9, oldest_pending_at=NOW - timedelta(hours=2))

    assert [one.key for one in needs_attention(replace(WELL, queues=(queue,)))] == ["paused emails"]


def test_a_draining_worker_does_not_count_against_its_pool() -> None:
    pool = replace(POOL, wanted=1, alive=2, draining=1)

    assert needs_attention(replace(WELL, pools=(pool,))) == []


def test_many_crashes_of_a_pool_are_one_finding() -> None:
    crashed = [replace(WORKER, id=f"h-mail-{n}", state="crashed", stopped_at=ago(seconds=n)) for n in range(1, 9)]

    found = needs_attention(replace(WELL, workers=(WORKER, *crashed)))

    assert [(one.subject, one.text) for one in found] == [
        ("pool mail", "8 workers crashed, the last 1s ago: no reason known")
    ]


def test_a_crash_loop_says_it_alone() -> None:
    found = needs_attention(replace(CRASH_LOOP, workers=CRASHED.workers))

    assert [one.subject for one in found] == ["pool mail"]


def test_a_process_that_beats_while_a_loop_of_it_stands_still_is_critical() -> None:
    loops = (LoopHealth("claim", 95.0, 30.0, "no answer"), LoopHealth("reaper", 1.0, 30.0))
    view = replace(WELL, workers=(replace(WORKER, loops=loops),), supervisors=(replace(SUPERVISOR, loops=loops[:1]),))

    found = needs_attention(view)

    assert [(one.severity, one.subject, one.text) for one in found] == [
        (Severity.CRITICAL, "worker mail-1", "claim stands still for 1m35s: no answer"),
        (Severity.CRITICAL, "supervisor h", "claim stands still for 1m35s: no answer"),
    ]
    assert detail_plain(worker_detail(view.workers[0], NOW, PLAIN)).count("stand still") == 1


def loose(number: int, host: str = "h", **changes: Any) -> WorkerView:
    return replace(WORKER, id=f"{host}-worker-{number:04x}", host=host, pool=None, supervisor_id=None, **changes)


def test_starts_by_hand_that_failed_are_one_finding_for_each_host() -> None:
    failed = [
        loose(number, host, state="crashed", stopped_at=ago(seconds=number), exit_reason="no module shop")
        for host in ("a", "b")
        for number in range(1, 6)
    ]

    found = needs_attention(replace(WELL, workers=(WORKER, *failed)))

    assert sorted((one.subject, one.text, one.target) for one in found) == [
        ("host a", "5 workers without a pool crashed, the last 1s ago: no module shop", "worker a-worker-0001"),
        ("host b", "5 workers without a pool crashed, the last 1s ago: no module shop", "worker b-worker-0001"),
    ]


def test_a_worker_without_a_pool_is_called_so_once() -> None:
    failed = loose(7, state="crashed", stopped_at=ago(seconds=5))

    found = needs_attention(replace(WELL, workers=(WORKER, failed)))

    assert [one.subject for one in found] == ["worker 0007"]


def test_workers_of_one_pool_that_fell_silent_are_one_finding() -> None:
    silent = [replace(WORKER, id=f"h-mail-{n}", is_stale=True, heartbeat_at=ago(seconds=60 * n)) for n in (1, 2, 3)]

    found = needs_attention(replace(WELL, workers=(*silent, replace(WORKER, id="h-mail-9"))))

    assert [(one.subject, one.text, one.target) for one in found] == [
        ("pool mail", "3 workers sent no heartbeat, one for 3m", "worker h-mail-3")
    ]


@pytest.mark.parametrize("phase", [0.0, 3.0, 7.5, 14.9])
@pytest.mark.parametrize(
    ("window", "bucket", "words"),
    [(900, 15, "+21 in the last 5m"), (60, 1, "+60 in the last 1m"), (604_800, 3_600, "+2 in the last 1h")],
)
def test_the_deaths_are_those_of_the_time_that_is_named(window: int, bucket: int, words: str, phase: float) -> None:
    first = NOW - timedelta(seconds=window - bucket + phase % bucket)
    points = tuple(
        StatsPoint(first + timedelta(seconds=bucket * number), bucket, dead=1) for number in range(window // bucket)
    )

    found = needs_attention(replace(WELL, throughput=points))

    assert [one.text.startswith(words) for one in found if one.key == "deaths"] == [True]


def shop_with_failed_starts() -> Shop:
    """Two hosts on which somebody tries to start workers by hand: those of the first one ended before the others."""
    shop = busy_shop()
    for host, since in (("far", 60), ("near", 1)):
        shop.workers += [
            loose(number, host, state="crashed", stopped_at=ago(seconds=since + number), exit_reason="no module")
            for number in range(6)
        ]
    return shop


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
@pytest.mark.parametrize("is_filtered", [False, True])
async def test_enter_on_a_finding_lands_on_the_worker_it_is_about(size: tuple[int, int], is_filtered: bool) -> None:
    app = console(FakeBackend(shop_with_failed_starts()), interval=0.2)

    async with app.run_test(size=size) as pilot:
        if is_filtered:
            await pilot.press("6")
            burst(pilot, "/mail", "enter")
            await shows(pilot, "Workers / mail")
            await pilot.press("1")
        await settle(pilot, until=lambda: app.session.overview is not None)
        app.post_message(GoTo("workers", "worker far-worker-0000"))

        def is_there() -> bool:
            return (
                app.current_mode == "workers"
                and app.console_screen.query_one(RowTable).cursor_key == "worker far-worker-0000"
            )

        await settle(pilot, until=is_there)
        await pilot.pause(0.5)
        assert is_there(), "another look left the row out"
        await shows(pilot, "worker far-worker-0000", "no module")
