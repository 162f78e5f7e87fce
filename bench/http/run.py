#!/usr/bin/env python3
"""`POST /jobs` by 1, 16 and 64 clients, beside the bare INSERT of the same job by as many sessions; see README.md."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from pgq_core.bench.figures import Spread, percentile
from pgq_core.bench.machine import this_machine
from pgq_core.embedded import EmbeddedServer
from pgq_core.embedded.binaries import find_binaries
from pgq_core.migrate import migrate

HERE = Path(__file__).parent
DATABASE = "bench_http"
INSERT = """INSERT INTO pgq_core.jobs (queue, payload)
VALUES ('default', '{"type": "send_email", "data": {"to": "a@example.org", "n": 1}}') RETURNING id;
"""
_READY_SECONDS = 30.0
_SETTINGS = ("server_version", "fsync", "synchronous_commit", "shared_buffers")


@dataclass(slots=True)
class Series:
    """One row of the report: figures of all rounds."""

    rates: list[float] = field(default_factory=list)
    medians: list[float] = field(default_factory=list)
    slowest: list[float] = field(default_factory=list)

    def add(self, latencies: list[float], seconds: float) -> None:
        ordered = sorted(latencies)
        self.rates.append(len(ordered) / seconds)
        self.medians.append(percentile(ordered, 0.5) * 1000)
        self.slowest.append(percentile(ordered, 0.99) * 1000)

    def cells(self) -> list[str]:
        return [str(Spread.of(values)) for values in (self.rates, self.medians, self.slowest)]


def main() -> int:
    args = _arguments()
    clients = [int(number) for number in args.clients.split(",")]
    found: dict[tuple[str, int], Series] = {}
    conditions = _conditions()
    with contextlib.ExitStack() as stack:
        dsn = stack.enter_context(_database(args.dsn))
        url = stack.enter_context(_api(dsn))
        for round_number in range(args.rounds):
            for number in clients:
                for name in ("POST", "POST with a key", "INSERT"):
                    latencies = _measured(name, url, dsn, number, args)
                    found.setdefault((name, number), Series()).add(latencies, args.seconds)
                    _say(f"round {round_number + 1}/{args.rounds}: {name}, {number}: {found[name, number].cells()}")
        conditions += _server_settings(dsn)
    _write(args.out, conditions, found)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", help="of a role with CREATEDB; default: an embedded server, made for this")
    parser.add_argument("--clients", default="1,16,64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement, after the warm-up")
    parser.add_argument("--warm-up", type=float, default=1.0)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "latest", help="prefix of the .md and .json")
    return parser.parse_args()


@contextlib.contextmanager
def _database(given: str | None) -> Iterator[str]:
    """Fresh, migrated, and dropped in the end."""
    with contextlib.ExitStack() as stack:
        server = given or stack.enter_context(EmbeddedServer("bench-http").lease())
        _administer(server, f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)", f"CREATE DATABASE {DATABASE}")
        stack.callback(_administer, server, f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        dsn = psycopg.conninfo.make_conninfo(server, dbname=DATABASE)
        migrate(dsn, schema="pgq_core")
        yield dsn


def _administer(server: str, *statements: str) -> None:
    with psycopg.connect(server, autocommit=True) as conn:
        for statement in statements:
            conn.execute(statement)


@contextlib.contextmanager
def _api(dsn: str) -> Iterator[str]:
    """One process of `pgq-core api` with default settings, its log in a file."""
    with tempfile.NamedTemporaryFile("r+", suffix=".log") as log:
        command = [sys.executable, "-m", "pgq_core.cli", "api", "serve", "--port", "0"]
        server = subprocess.Popen(command, env={**os.environ, "DATABASE_URL": dsn}, stdout=log, stderr=log)
        try:
            yield _address(Path(log.name), server)
        finally:
            server.terminate()
            server.wait(40)


def _address(log: Path, server: subprocess.Popen[bytes]) -> str:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        if found := re.search(r'"url":"([^"]+)"', log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise SystemExit(f"the API did not start: {log.read_text()}")


def _measured(name: str, url: str, dsn: str, clients: int, args: argparse.Namespace) -> list[float]:
    _administer(dsn, "TRUNCATE pgq_core.jobs, pgq_core.job_keys", "CHECKPOINT")
    if name == "INSERT":
        return _inserted(dsn, clients, args.seconds)
    keyed = "keyed" if name.endswith("key") else "plain"
    command = [sys.executable, str(HERE / "client.py"), url, str(clients), str(args.warm_up), str(args.seconds), keyed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    latencies: list[float] = json.loads(done.stdout)["latencies"]
    return latencies


def _inserted(dsn: str, clients: int, seconds: float) -> list[float]:
    """pgbench, one session per client: the same INSERT with nothing in front of it."""
    pgbench = find_binaries().program("pgbench")
    with tempfile.TemporaryDirectory() as directory:
        script = Path(directory) / "insert.sql"
        script.write_text(INSERT)
        command = [pgbench, dsn, "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(round(seconds))]
        command += ["-f", str(script), "-l", f"--log-prefix={directory}/log"]
        subprocess.run(command, check=True, capture_output=True)
        lines = [line for path in Path(directory).glob("log.*") for line in path.read_text().splitlines()]
    return [int(line.split()[2]) / 1_000_000 for line in lines]


def _conditions() -> list[str]:
    taken_at = datetime.now(UTC).isoformat(timespec="seconds")
    return [f"Measured {taken_at} on {this_machine()}; load {os.getloadavg()[0]:.1f} before."]


def _server_settings(dsn: str) -> list[str]:
    with psycopg.connect(dsn) as conn:
        values = {name: conn.execute("SELECT current_setting(%s)", (name,)).fetchone()[0] for name in _SETTINGS}
    return ["; ".join(f"{name} {value}" for name, value in values.items()) + "."]


def _write(prefix: Path, conditions: list[str], found: dict[tuple[str, int], Series]) -> None:
    lines = [*conditions, "", "| | clients | per second | p50, ms | p99, ms |", "|---|--:|--:|--:|--:|"]
    lines += [f"| {name} | {number} | {' | '.join(series.cells())} |" for (name, number), series in found.items()]
    prefix.parent.mkdir(parents=True, exist_ok=True)
    prefix.with_name(f"{prefix.name}.md").write_text("\n".join(lines) + "\n")
    figures = [
        {"what": name, "clients": number, "rates": series.rates, "p50_ms": series.medians, "p99_ms": series.slowest}
        for (name, number), series in found.items()
    ]
    document = json.dumps({"conditions": conditions, "figures": figures})
    prefix.with_name(f"{prefix.name}.json").write_text(f"{document}\n")
    print("\n".join(lines))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
