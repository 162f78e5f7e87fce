"""The database goes away, comes back, hangs, refuses, runs out: nobody has to do anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgq_core.migrate import migrate
from tests.conftest import SCHEMA
from tests.support.databases import database_dsn, new_database
from tests.torture import form
from tests.torture.arena import Arena
from tests.torture.conftest import open_arena
from tests.torture.faults import connections_taken, repeatedly, server_settings, sever_one
from tests.torture.proxy import proxy_to
from tests.torture.server import TortureServer

pytestmark = [pytest.mark.torture, pytest.mark.system]

NAP = 0.2
CALM = 5.0
"""Seconds of undisturbed work before a fault: the rate that has to be reached again."""
DISK = 500 * 1024 * 1024


def work(arena: Arena, seconds: float, rate: float = 200.0) -> None:
    """A backlog that lasts for so long, in jobs that take time and no processor."""
    arena.enqueue("nap", {"seconds": NAP}, count=int(seconds * rate), max_attempts=3)


def calm(arena: Arena) -> float:
    """Works undisturbed for a while; answers the rate."""
    arena.until_finished(50)
    begun = time.time()
    time.sleep(CALM)
    return arena.timeline().rate(begun, begun + CALM - 0.5)


def back_after(arena: Arena, since: float, usual: float, within: float) -> float:
    """Seconds until the rate is back; waits for it, and fails when it takes much longer than `within`."""
    deadline = time.time() + 3 * within + 20.0
    while (found := arena.timeline().back_after(since, usual, until=time.time() - 0.5)) is None:
        assert time.time() < deadline, f"the rate of {usual:.0f}/s did not come back"
        time.sleep(0.5)
    return found


def charged(arena: Arena) -> int:
    """Attempts that trouble with the database has cost."""
    return int(arena.database.value("SELECT count(*) FROM job_runs WHERE outcome IN ('retried', 'dead')"))


@pytest.mark.parametrize("workers", [8, 2])
def test_sessions_severed_at_five_a_second_end_no_process_and_halve_no_rate(arena: Arena, workers: int) -> None:
    seconds = form.seconds(120)
    fleet = arena.fleet(workers, 32 // workers).start()
    work(arena, CALM + seconds + 40)
    usual = calm(arena)
    begun = time.time()
    with repeatedly(0.2, lambda: sever_one(arena.database.connection())) as cuts:
        time.sleep(seconds)
    ended = time.time()
    back = back_after(arena, ended, usual, 10.0)
    during = arena.timeline().rate(begun, ended) / usual
    arena.call_off()
    arena.until_done(120)

    arena.judge(
        f"Severed sessions, {workers} workers",
        f"{len(arena.accepted)} jobs, {workers} workers",
        f"{cuts.count} sessions ended",
        back_after=back,
        rate_during=during,
        attempts_charged=charged(arena),
    )
    assert fleet.crashed_by_itself() == []
    assert arena.database.all("SELECT FROM workers WHERE stopped_at IS NOT NULL") == []
    assert during >= 0.5
    assert back <= 10
    assert charged(arena) == 0


def test_immediate_restarts_in_a_row_cost_no_attempt_and_the_rate_is_back(arena: Arena, server: TortureServer) -> None:
    rounds, pause = form.count(5, 2), form.seconds(30, 6)
    fleet = arena.fleet(8, 4, stale_limit=30.0).start()
    work(arena, CALM + rounds * (pause + 12) + 20)
    usual = calm(arena)
    backs = []
    for _ in range(rounds):
        arena.database.close()
        server.crash()
        accepted = server.start()
        backs.append(back_after(arena, accepted, usual, 15.0))
        time.sleep(pause)
    arena.call_off()
    arena.until_done(120)

    arena.judge(
        "Immediate restarts",
        f"{len(arena.accepted)} jobs, 8 workers",
        f"{rounds} x immediate stop",
        back_after=max(backs),
        attempts_charged=charged(arena),
    )
    assert max(backs) <= 15
    assert fleet.crashed_by_itself() == []
    assert charged(arena) == 0


def test_fast_stop_for_longer_than_the_lease_loses_nothing(arena: Arena, server: TortureServer) -> None:
    arena.fleet(4, 4).start()
    work(arena, CALM + 25, rate=100)
    usual = calm(arena)
    arena.database.close()
    server.stop()
    time.sleep(form.seconds(60, 8))
    accepted = server.start()
    back = back_after(arena, accepted, usual, 15.0)
    arena.call_off()
    arena.until_done(120)

    arena.judge("Outage beyond the lease", f"{len(arena.accepted)} jobs, 4 workers", "1 x fast stop", back_after=back)
    assert back <= 15
    assert charged(arena) == 0


@pytest.mark.parametrize("resets", [True, False], ids=["then reset", "without reset"])
def test_swallowed_packets_lose_nothing_and_run_nothing_twice(
    arena: Arena, server: TortureServer, resets: bool
) -> None:
    seconds = form.seconds(60, 8)
    name = conninfo_to_dict(arena.dsn)["dbname"]
    with proxy_to(database_dsn(server.tcp_url, str(name))) as proxy:
        fleet = arena.fleet(4, 4, dsn=proxy.url).start()
        other = arena.fleet(1, 4, host="elsewhere").start()
        work(arena, CALM + 3 * seconds + 30, rate=100)
        usual = calm(arena)
        proxy.swallow()
        time.sleep(seconds)
        if resets:
            proxy.mend()
        else:
            proxy.pass_new_ones()
        mended = time.time()
        back = back_after(arena, mended, usual, 15.0)
        arena.call_off()
        arena.until_done(120)
        assert fleet.until_full() < 60
        arena.judge(
            f"Swallowed packets, {'then reset' if resets else 'no reset ever'}",
            f"{len(arena.accepted)} jobs, 4 + 1 workers",
            f"silence of {seconds:.0f} s",
            back_after=back,
            lost_runs=arena.database.value("SELECT count(*) FROM job_runs WHERE outcome = 'lost'"),
        )
        # Ten seconds of it are the limit of a call that was asked just before; then workers start anew.
        assert back <= form.bound(15)
        assert charged(arena) == 0
        assert len(other.running()) == 1


def test_suspended_server_is_waited_for(arena: Arena, server: TortureServer) -> None:
    fleet = arena.fleet(4, 4).start()
    work(arena, CALM + 25, rate=100)
    usual = calm(arena)
    server.suspend()
    try:
        time.sleep(form.seconds(60, 8))
    finally:
        server.resume()
    back = back_after(arena, time.time(), usual, 15.0)
    arena.call_off()
    arena.until_done(120)

    arena.judge("Suspended server", f"{len(arena.accepted)} jobs, 4 workers", "1 x SIGSTOP", back_after=back)
    assert fleet.crashed_by_itself() == []
    assert charged(arena) == 0


@pytest.mark.parametrize("second_host", [False, True], ids=["read-only", "second host"])
def test_t07_primary_that_takes_no_writes_costs_no_attempt(
    arena: Arena, server: TortureServer, second_host: bool
) -> None:
    seconds = form.seconds(60, 8)
    name = str(conninfo_to_dict(arena.dsn)["dbname"])
    with ExitStack() as stack:
        dsn = arena.dsn
        if second_host:
            proxies = [stack.enter_context(proxy_to(database_dsn(server.tcp_url, name))) for _ in range(2)]
            parts = [conninfo_to_dict(proxy.url) for proxy in proxies]
            ports = ",".join(str(part["port"]) for part in parts)
            dsn = make_conninfo(
                proxies[0].url, host="127.0.0.1,127.0.0.1", port=ports, target_session_attrs="read-write"
            )
        arena.fleet(4, 4, dsn=dsn).start()
        work(arena, CALM + seconds + 20, rate=100)
        usual = calm(arena)
        if second_host:
            proxies[0].cut()
            flipped = time.time()
        else:
            with server_settings(arena.database.connection(), default_transaction_read_only="on"):
                time.sleep(seconds)
            flipped = time.time()
        back = back_after(arena, flipped, usual, 10.0)
        arena.call_off()
        arena.until_done(120)
        arena.judge(
            "T07 second host" if second_host else "T07 read-only",
            f"{len(arena.accepted)} jobs, 4 workers",
            "first host gone" if second_host else f"read-only for {seconds:.0f} s",
            back_after=back,
            attempts_charged=charged(arena),
        )
    assert back <= 10
    assert charged(arena) == 0


def test_t08_no_connection_left_means_patience_not_a_crash_loop(home: Path, tmp_path: Path) -> None:
    seconds = form.seconds(60, 10)
    with ExitStack() as stack:
        settings = {"max_connections": "30", "superuser_reserved_connections": "0"}
        server = stack.enter_context(small_server(home, "crowded", **settings))
        with arena_on(server, tmp_path) as arena:
            fleet = arena.fleet(4, 4).start()
            work(arena, CALM + seconds + 20, rate=100)
            usual = calm(arena)
            refused = count_refused(server)
            with connections_taken(arena.dsn, arena.database.connection(), 25):
                begun = time.time()
                time.sleep(seconds)
                tries = count_refused(server) - refused
            ended = time.time()
            back = back_after(arena, ended, usual, 15.0)
            arena.call_off()
            arena.until_done(120)
            per_second = tries / (ended - begun) / 5  # four runners and their supervisor
            restarts = arena.database.value("SELECT count(*) FROM workers") - 4
            arena.judge(
                "T08",
                f"{len(arena.accepted)} jobs, 4 workers",
                f"25 of 30 connections taken for {seconds:.0f} s",
                back_after=back,
                restarts=restarts,
                tries_per_second_and_process=per_second,
            )
            assert restarts <= 4
            assert fleet.crashed_by_itself() == []
            assert per_second <= 1.0
            assert back <= 15
            assert charged(arena) == 0


def test_t23_short_timeouts_and_serializable_fail_no_job(arena: Arena) -> None:
    seconds = form.seconds(30, 10)
    arena.fleet(4, 4, runs_kept=0).start()
    work(arena, CALM + seconds + 20, rate=100)
    usual = calm(arena)
    conn = arena.database.connection()

    def lock() -> None:
        with conn.transaction():
            conn.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
            time.sleep(0.3)

    with (
        server_settings(
            conn, statement_timeout="50ms", lock_timeout="50ms", default_transaction_isolation="serializable"
        ),
        repeatedly(2.0, lock) as locks,
    ):
        time.sleep(seconds)
    back = back_after(arena, time.time(), usual, 10.0)
    arena.call_off()
    arena.until_done(120)

    arena.judge(
        "T23 timeouts",
        f"{len(arena.accepted)} jobs, 4 workers",
        f"timeouts of 50 ms, serializable, {locks.count} table locks",
        back_after=back,
        attempts_charged=charged(arena),
    )
    assert back <= 10
    assert charged(arena) == 0


def test_t23_full_disk_fails_no_job(tmp_path: Path) -> None:
    seconds = form.seconds(30, 8)
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path / "disk"))
        server = stack.enter_context(small_server(disk, "full", max_wal_size="64MB"))
        with arena_on(server, tmp_path) as arena:
            arena.fleet(4, 4).start()
            work(arena, CALM + seconds + 20, rate=100)
            usual = calm(arena)
            ballast = disk / "ballast"
            fill(ballast)
            begun = time.time()
            while time.time() < begun + seconds:
                fill(ballast)
                time.sleep(0.2)
            ballast.unlink()
            arena.database.close()
            accepted = server.start()  # a server that could not write its log has ended itself
            back = back_after(arena, accepted, usual, 10.0)
            arena.call_off()
            arena.until_done(120)
            arena.judge(
                "T23 full disk",
                f"{len(arena.accepted)} jobs, 4 workers",
                f"disk full for {seconds:.0f} s",
                back_after=back,
                attempts_charged=charged(arena),
            )
            assert back <= 10
            assert charged(arena) == 0


@contextmanager
def small_server(home: Path, name: str, **settings: str) -> Iterator[TortureServer]:
    server = TortureServer(home, name, **settings)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def arena_on(server: TortureServer, directory: Path) -> Iterator[Arena]:
    with new_database(server.url, search_path=SCHEMA) as dsn:
        migrate(dsn, schema=SCHEMA)
        arena = open_arena(dsn, directory)
        try:
            yield arena
        finally:
            arena.close()
            server.start()


@contextmanager
def small_disk(directory: Path) -> Iterator[Path]:
    """A file system of its own, where rights allow."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small file system needs root and mount")
    directory.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], capture_output=True, check=False)


def fill(ballast: Path) -> None:
    """Until there is no room for a single page."""
    with ballast.open("ab", buffering=0) as file:
        for size in (1024 * 1024, 4096):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def count_refused(server: TortureServer) -> int:
    return server.log.read_text(errors="replace").count("too many clients already")
