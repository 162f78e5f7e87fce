"""The demo without a screen: `python -m pgq_tui.demo --seconds 20` runs it, says what happened, and stops it."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

from pgq_core.database import connect
from pgq_core.domain.snapshot import DeadGroup, Overview
from pgq_core.inspector import Inspector
from pgq_core.queries import Queries
from pgq_tui.demo.session import DemoSession, start_demo


def main() -> int:
    arguments = _arguments()
    started = time.monotonic()
    session = start_demo(arguments.home, on_progress=lambda step: _say(f"{step} ..."))
    try:
        _say(f"started in {time.monotonic() - started:.1f} s; one look after {arguments.seconds:g} s")
        time.sleep(arguments.seconds)
        _say("\n".join(_report(*asyncio.run(_look(session)), since=timedelta(seconds=time.monotonic() - started))))
    finally:
        stopping = time.monotonic()
        session.stop()
    _say(f"stopped in {time.monotonic() - stopping:.1f} s")
    return 0


async def _look(session: DemoSession) -> tuple[Overview, tuple[DeadGroup, ...]]:
    inspector = Inspector(Queries(session.schema))
    async with await connect(session.dsn, application_name="pgq demo") as conn:
        return await inspector.overview(conn), await inspector.dead_groups(conn)


def _report(overview: Overview, groups: tuple[DeadGroup, ...], *, since: timedelta) -> list[str]:
    return [
        _finished(overview, overview.taken_at - since),
        *(
            f"queue {queue.name}: {queue.pending.value} pending, {queue.running} running, "
            f"{queue.retrying.value} retrying, {queue.scheduled.value} scheduled, {queue.dead.value} dead"
            for queue in overview.queues
        ),
        *(
            f"pool {pool.name}: {pool.alive} of {pool.wanted} workers, {pool.restarts} restarts, {pool.state}"
            for pool in overview.pools
        ),
        *(
            f"dead letters: {group.count.value} {group.job_type}: {group.sample_error.splitlines()[0]}"
            for group in groups
        ),
    ]


def _finished(overview: Overview, begin: datetime) -> str:
    total: Counter[str] = Counter()
    for point in overview.throughput:
        if point.at >= begin:
            total.update(succeeded=point.succeeded, retried=point.retried, dead=point.dead, other=point.other)
    return "runs: " + ", ".join(f"{count} {outcome}" for outcome, count in total.items())


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - this program's output


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pgq_tui.demo", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--home", type=Path, help="where the demo's server keeps its data")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
