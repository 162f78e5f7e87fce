"""Many programs that meet an empty database at the same moment."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from random import Random

import psycopg
import pytest

from tests.support.databases import new_database
from tests.support.worker_process import ROOT
from tests.torture import form
from tests.torture.report import RunReport, publish
from tests.torture.server import TortureServer

pytestmark = [pytest.mark.torture, pytest.mark.system]

PROGRAMS = 8


def test_t28_first_starts_in_parallel_with_one_killed_in_the_middle(server: TortureServer) -> None:
    rounds, random, slowest, begun = form.count(20, 2), Random(28), 0.0, time.time()
    for _ in range(rounds):
        with new_database(server.url) as dsn:
            started = time.monotonic()
            programs = [migrating(dsn) for _ in range(PROGRAMS)]
            time.sleep(random.uniform(0.3, 1.5))
            victim = random.choice(programs)
            victim.kill()
            for program in programs:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    program.wait(120)
            slowest = max(slowest, time.monotonic() - started)
            words = [program.communicate()[0] for program in programs]
            codes = [program.returncode for program in programs]
            assert all(code == 0 for program, code in zip(programs, codes, strict=True) if program is not victim), words
            with psycopg.connect(dsn) as conn:
                versions = conn.execute("SELECT version FROM pgq_core.schema_migrations ORDER BY 1").fetchall()
            assert versions == [(number + 1,) for number in range(len(versions))]
            assert len(versions) >= 6
    report = RunReport(
        run="T28",
        load=f"{PROGRAMS} first starts at once, {rounds} rounds",
        seconds=time.time() - begun,
        faults=f"{rounds} x SIGKILL in the middle",
        lost=0,
        overlaps=0,
        worst_wait=slowest,
    )
    publish(report, form=form.NAME)
    assert slowest <= form.bound(10)


def migrating(dsn: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pgq_core.cli", "--dsn", dsn, "migrate"],
        cwd=ROOT,
        env=dict(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
