#!/usr/bin/env python3
"""Side-by-side benchmark of PostgreSQL job queues; see README.md. Run it with this project's interpreter."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from harness.database import PeerDatabase
from harness.peers import Entry, Peer, PeerFailed
from harness.report import Results
from harness.steps import Sizes, drain, enqueue_in_bulk, enqueue_one_by_one, pick_up

from pgq_core.bench.machine import this_machine
from pgq_core.embedded import EmbeddedServer

HERE = Path(__file__).parent
SETTINGS = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_sync_method",
    "shared_buffers",
    "max_wal_size",
    "max_connections",
)
Step = Callable[[Peer, PeerDatabase, Sizes], dict[str, float]]


def main() -> int:
    args = _arguments()
    with contextlib.ExitStack() as stack:
        server = args.dsn or stack.enter_context(_embedded_server())
        results = Results(_conditions(server, args))
        competitors = _competitors(args, server, stack, results)
        for round_number in range(args.rounds):
            for label, step in _steps(args):
                # Interleaved, and back again in the next round: what changes with time falls on nobody alone.
                for peer, database in competitors if round_number % 2 == 0 else competitors[::-1]:
                    if label.rstrip("0123456789") in peer.steps:
                        _measure(Turn(label, step, round_number), peer, database, args, results)
        results.write(args.out)
        print(results.markdown())
        return 1 if results.has_errors else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", help="superuser on a server over TCP; default: an embedded one, made for this")
    parser.add_argument("--envs", type=Path, default=Path(os.environ.get("ENVS", HERE / "envs")), help="of setup.sh")
    parser.add_argument("--peers", default="", help="comma list; default: all of peers.json")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs in a drain, times the peer's scale")
    parser.add_argument("--scale", action="append", default=[], metavar="PEER=SCALE", help="in place of the peer's own")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", default="1,2,8", help="numbers of worker processes in the drains")
    parser.add_argument("--only", default="single,bulk,drain,pickup", help="steps")
    parser.add_argument("--pickups", type=int, default=200)
    parser.add_argument("--settle", type=float, default=2.5, metavar="SECONDS")
    parser.add_argument("--stall", type=float, default=45, metavar="SECONDS")
    parser.add_argument("--opt", action="append", default=[], metavar="PEER:KEY=VALUE")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "latest", help="prefix of the .md and .json")
    return parser.parse_args()


@contextlib.contextmanager
def _embedded_server() -> Iterator[str]:
    """Default settings, and statements counted; over TCP, since not every peer speaks to a socket."""
    server = EmbeddedServer("peers", settings={"shared_preload_libraries": "pg_stat_statements"})
    with server.lease():
        address = server.status().tcp_url
        if address is None:
            raise SystemExit("the embedded server does not listen on TCP")
        yield address


def _competitors(
    args: argparse.Namespace, server: str, stack: contextlib.ExitStack, results: Results
) -> list[tuple[Peer, PeerDatabase]]:
    """Those that can be set up; the others are named and left out."""
    entries = Entry.read(HERE / "peers.json")
    scales = dict(text.split("=") for text in args.scale)
    ready = []
    for name in [part for part in args.peers.split(",") if part] or list(entries):
        options = dict(text.partition(":")[2].split("=", 1) for text in args.opt if text.partition(":")[0] == name)
        scale = float(scales[name]) if name in scales else entries[name].scale
        try:
            peer = Peer(replace(entries[name], options=entries[name].options | options, scale=scale), args.envs)
            database = stack.enter_context(PeerDatabase(server, peer))
        except PeerFailed as error:
            _say(f"LEFT OUT {name}: {error}")
            continue
        results.add_peer(name, peer.about, args.rounds)
        ready.append((peer, database))
        _say(f"ready: {name} {peer.about['versions']}, {peer.about['runtime']}")
    return ready


def _steps(args: argparse.Namespace) -> Iterator[tuple[str, Step]]:
    wanted = set(args.only.split(","))
    if "single" in wanted:
        yield "single", enqueue_one_by_one
    if "bulk" in wanted:
        yield "bulk", enqueue_in_bulk
    if "drain" in wanted:
        for workers in map(int, args.workers.split(",")):
            yield f"drain{workers}", functools.partial(drain, workers=workers)
    if "pickup" in wanted:
        yield "pickup", pick_up


@dataclass(frozen=True, slots=True)
class Turn:
    label: str
    step: Step
    round_number: int


def _measure(turn: Turn, peer: Peer, database: PeerDatabase, args: argparse.Namespace, results: Results) -> None:
    sizes = Sizes(jobs=args.jobs, pickups=args.pickups, settle=args.settle, stall=args.stall)
    started_at = time.monotonic()
    outcome = ""
    try:
        with database.fresh():
            results.add(peer.name, turn.round_number, turn.step(peer, database, sizes))
    except (PeerFailed, psycopg.Error) as error:  # one peer's trouble must not stop the others
        results.add_error(peer.name, f"round {turn.round_number + 1}, {turn.label}: {error}")
        outcome = f" FAILED: {error}"
    seconds = time.monotonic() - started_at
    _say(f"round {turn.round_number + 1}/{args.rounds} {turn.label} {peer.name} {seconds:.1f} s{outcome}")


def _conditions(server: str, args: argparse.Namespace) -> dict[str, Any]:
    with psycopg.connect(server, autocommit=True) as conn:
        settings = {name: conn.execute("SELECT current_setting(%s)", (name,)).fetchone()[0] for name in SETTINGS}
    return {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": str(this_machine()),
        "load": os.getloadavg()[0],
        "server": settings,
        "rounds": args.rounds,
        "jobs": args.jobs,
    }


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
