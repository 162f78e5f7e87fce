"""Too much load, for too long, with somebody in the way."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgq_core.bench.capacity import find_capacity
from pgq_core.bench.schedule import Schedule
from pgq_core.database import connect
from pgq_core.domain.snapshot import Overview
from pgq_core.inspector import Inspector
from pgq_core.queries import Queries
from pgq_tui.view_model.attention import OLD_SNAPSHOT, needs_attention
from tests.conftest import SCHEMA
from tests.support.worker_process import ROOT
from tests.torture import form
from tests.torture.arena import Arena
from tests.torture.faults import open_transaction, repeatedly
from tests.torture.loads import CAPACITY, NAP, SLOTS
from tests.torture.timed_jobs import durations

pytestmark = [pytest.mark.torture, pytest.mark.system]

FLOOD = 100 * 1024 * 1024
TIMED_APP = str(Path(__file__).with_name("timed_jobs.py"))
CAPACITY_VARIABLE = "TORTURE_CAPACITY"
"""Jobs a second that can be taken in and worked off here for as long as one likes; without it a search finds out."""
FIRST_GUESS = 0.4
"""Of the rate of a drain: producers and their half of the server's work share the machine."""
TRIAL, CONFIRMATION = 20.0, 60.0
SETTLING, LOOKING = 3.0, 10.0
"""Seconds of load before and behind what is judged; the second is there for those who look."""


def test_t11_overload_does_not_collapse_and_memory_stays_flat(arena: Arena) -> None:
    seconds = form.seconds(300)
    fleet = arena.fleet(4, SLOTS // 4).start()
    with arena.offered("nap", {"seconds": NAP}, per_second=1.5 * CAPACITY):
        time.sleep(4)
        began = time.time()
        memory = fleet.resident_bytes()
        time.sleep(seconds)
        ended = time.time()
        grown = fleet.resident_bytes() / memory
    done = arena.until_done(600)

    timeline = arena.timeline()
    peak = timeline.rate(began, began + seconds / 3)
    worst = timeline.worst(began, ended, 5.0)
    draining = timeline.rate(ended, done - 0.5)
    arena.judge(
        "T11",
        f"{1.5 * CAPACITY:.0f} jobs/s offered, capacity {CAPACITY:.0f}",
        "1.5 times too much",
        worst_rate=worst / peak,
        draining_rate=draining / peak,
        memory_grown_to=grown,
    )
    assert worst >= 0.9 * peak
    assert draining >= 0.9 * peak
    assert grown <= 1.3


def test_open_transaction_slows_nothing_and_is_named(arena: Arena) -> None:
    """The long form asks for a share of what this machine can sustain; the short one of what naps allow.

    600 s, and 75 s in the short form, since younger transactions are not worth a name. Each minute is judged by what
    the producers committed in it, and the whole run says nothing when they committed too little.
    """
    seconds, window = form.seconds(600, 75), form.seconds(60, 10)
    arena.fleet(4, SLOTS // 4, app=TIMED_APP).start()
    if form.IS_LONG:
        job, data, capacity = "noop", {}, float(os.environ.get(CAPACITY_VARIABLE) or sustained(arena))
    else:
        job, data, capacity = "nap", {"seconds": NAP}, CAPACITY
    asked = 0.6 * capacity
    arena.begin()
    schedule = Schedule(asked, SETTLING + seconds + LOOKING)
    with open_transaction(arena.dsn) as holder, arena.scheduled(job, data, schedule) as load:
        pid = holder.info.backend_pid
        began = load.started_at + SETTLING
        ended = began + seconds
        time.sleep(ended - time.time())
        view = asyncio.run(console(arena.dsn))
        findings = doctor(arena.dsn)
    arena.until_done(120)

    finished, committed = arena.timeline(), load.timeline()
    offered = committed.rate(began, ended)
    worst = finished.worst_share(committed, began, ended, window)
    claims = sorted(took for at, took in durations(arena.ledger.path) if began <= at <= ended)
    p99 = claims[int(len(claims) * 0.99)]
    arena.judge(
        "Held snapshot",
        f"{asked:.0f} jobs/s, 60 % of capacity",
        f"transaction open for {seconds:.0f} s",
        asked_per_s=asked,
        offered_per_s=offered,
        finished_per_s=finished.rate(began, ended),
        latest_batch_s=load.latest,
        worst_rate=worst,
        claims=len(claims),
        claim_p99_ms=p99 * 1000,
    )
    assert offered >= 0.95 * asked, "the producers did not offer what they were asked for: this run says nothing"
    assert f"pid {pid} " in (view.holder or "")
    assert f"pid {pid} " in findings["vacuum"]["detail"]
    assert seconds < OLD_SNAPSHOT.total_seconds() or any(str(pid) in item.text for item in needs_attention(view))
    assert worst >= 0.9
    assert p99 < form.bound(0.1)


def sustained(arena: Arena) -> float:
    """The highest rate, producers included, at which the backlog does not grow: for 20 s, confirmed by 60."""
    count, began = 50_000, time.time()
    arena.enqueue("noop", {}, count=count)
    drained = count / (arena.until_done(300) - began)
    return find_capacity(
        lambda rate, seconds: arena.holds("noop", {}, Schedule(rate, seconds)),
        drained * FIRST_GUESS,
        trial=TRIAL,
        confirm=CONFIRMATION,
    )


async def console(dsn: str) -> Overview:
    """What the dashboard reads."""
    async with await connect(dsn, application_name="pgq console") as conn:
        return await Inspector(Queries(SCHEMA)).overview(conn)


def doctor(dsn: str) -> dict[str, dict[str, str]]:
    """What `pgq-core doctor` finds, by check."""
    asked = subprocess.run(
        [sys.executable, "-m", "pgq_core.cli", "--dsn", dsn, "doctor", "--json"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return {finding["check"]: finding for finding in json.loads(asked.stdout)["checks"]}


@pytest.mark.parametrize("length", [80, 0], ids=["lines", "one endless line"])
def test_print_floods_stop_nobody_and_fill_no_memory(arena: Arena, length: int) -> None:
    size = form.count(FLOOD)
    fleet = arena.fleet(2, 2).start()
    before = fleet.resident_bytes()
    arena.enqueue("print", {"bytes": size, "length": length}, count=2)
    arena.enqueue("nap", {"seconds": 0.05}, count=200)
    largest = 0

    def measure() -> None:
        nonlocal largest
        largest = max(largest, fleet.resident_bytes())

    with repeatedly(0.5, measure):
        arena.until_done(300)

    grown = (largest - before) / 1024**2
    arena.judge(
        f"Log flood, {'lines' if length else 'one endless line'}",
        "202 jobs, 2 workers",
        f"2 jobs print {size // 1024**2} MB on each stream",
        memory_grown_mb=grown,
    )
    assert grown < 100
    assert arena.database.all("SELECT FROM job_runs WHERE outcome <> 'succeeded'") == []
    assert arena.database.value("SELECT count(*) FROM workers") == 2
