"""The jobs of these tests: what the fault catalogue of a queue needs, and a ledger that judges what really ran."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from typing import Any

import psycopg
from pydantic import BaseModel

from pgq_core.domain.job import Job
from pgq_core.domain.outcome import Cancel, Discard, NonRetryable, Retry, Snooze
from pgq_core.handlers import handler
from pgq_core.worker.context import JobContext

_local = threading.local()


def write_ledger(job: Job, event: str) -> None:
    """One line on a connection of its own, whatever becomes of the job's transaction."""
    if not hasattr(_local, "conn") or _local.conn.closed:
        _local.conn = psycopg.connect(os.environ["LEDGER_DSN"], autocommit=True)
    _local.conn.execute(
        "INSERT INTO public.ledger (job_id, attempt, pid, event) VALUES (%s, %s, %s, %s)",
        (job.id, job.attempt, os.getpid(), event),
    )


@handler("noop")
async def noop(data: Any) -> None:
    pass


@handler("plain")
def plain(data: Any) -> None:
    pass


@handler("ledger")
def ledger(data: dict[str, Any], job: Job) -> None:
    write_ledger(job, "start")
    time.sleep(data.get("seconds", 0.0))
    write_ledger(job, "end")


@handler("steps")
def steps(data: dict[str, Any], job: Job) -> None:
    """Sleeps in short steps, each with a line in the ledger."""
    write_ledger(job, "start")
    for _ in range(data["steps"]):
        time.sleep(data["seconds"])
        write_ledger(job, "step")
    write_ledger(job, "end")


@handler("sleep")
def sleep(data: dict[str, Any]) -> None:
    time.sleep(data["seconds"])


@handler("sleep_async")
async def sleep_async(data: dict[str, Any]) -> None:
    await asyncio.sleep(data["seconds"])


@handler("block_loop")
async def block_loop(data: dict[str, Any], job: Job) -> None:
    write_ledger(job, "start")
    time.sleep(data["seconds"])  # noqa: ASYNC251 - a coroutine that misbehaves
    write_ledger(job, "end")


@handler("spin")
def spin(data: dict[str, Any], job: Job) -> None:
    """Holds the GIL as much as Python code can."""
    write_ledger(job, "start")
    until = time.monotonic() + data["seconds"]
    while time.monotonic() < until:
        pass
    write_ledger(job, "end")


@handler("fail")
def fail(data: dict[str, Any]) -> None:
    raise RuntimeError(data.get("text", "simulated transient failure"))


@handler("fail_after", retry=lambda attempt, error: error.args[0])
def fail_after(data: dict[str, Any]) -> None:
    """Its policy, written in Python, wishes the delay that the job names."""
    raise RuntimeError(data["delay"])


@handler("give")
async def give(data: dict[str, Any]) -> Any:
    return eval(data["python"])


@handler("raise")
async def raise_(data: dict[str, Any]) -> None:
    raise eval(data["python"])


@handler("exit")
def exit_(data: dict[str, Any]) -> None:
    os._exit(data["code"])


@handler("kill")
def kill(data: dict[str, Any]) -> None:
    os.kill(os.getpid(), getattr(signal, data["signal"]))
    time.sleep(60)


@handler("print")
def print_(data: dict[str, Any]) -> None:
    for _ in range(data["lines"]):
        sys.stdout.write("x" * data["length"] + "\n")
        sys.stderr.write("y" * data["length"] + "\n")


class Invoice(BaseModel):
    customer: int
    total: float


@handler("bill", model=Invoice)
async def bill(invoice: Invoice) -> dict[str, float]:
    return {"total": invoice.total}


@handler("insert_row", transactional=True)
async def insert_row(data: dict[str, Any], job: Job, conn: psycopg.AsyncConnection[Any]) -> None:
    await conn.execute("INSERT INTO public.effects (job_id) VALUES (%s)", (job.id,))
    await asyncio.sleep(data.get("seconds", 0.0))
    if data.get("fail"):
        raise RuntimeError("after the insert")


@handler("insert_row_plain", transactional=True)
def insert_row_plain(data: dict[str, Any], job: Job, conn: psycopg.Connection[Any]) -> None:
    conn.execute("INSERT INTO public.effects (job_id) VALUES (%s)", (job.id,))
    time.sleep(data.get("seconds", 0.0))


@handler("until_cancelled")
def until_cancelled(data: dict[str, Any], context: JobContext) -> None:
    if context.cancelled.wait(data["seconds"]):
        raise Cancel("saw that it was cancelled")


WISHES = {"Cancel": Cancel, "Discard": Discard, "NonRetryable": NonRetryable, "Retry": Retry, "Snooze": Snooze}


@handler("print_slowly")
def print_slowly(data: dict[str, Any]) -> None:
    until = time.monotonic() + data["seconds"]
    while time.monotonic() < until:
        sys.stdout.write("still here\n" * 20)
        sys.stderr.write("still here\n")
        time.sleep(0.005)


@handler("fork")
def fork(data: dict[str, Any]) -> None:
    """The child comes back from the handler like its parent."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)


@handler("fork_async")
async def fork_async(data: dict[str, Any]) -> None:
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)  # noqa: ASYNC222


@handler("multiprocess")
def multiprocess(data: dict[str, Any]) -> int:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return sum(pool.map(abs, range(-3, 3)))


@handler("close_streams")
def close_streams(data: dict[str, Any]) -> None:
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    os.closerange(0, 3)


@handler("change_process")
async def change_process(data: dict[str, Any]) -> None:
    """What a job should not do to the process it runs in."""
    os.chdir("/")
    os.environ.clear()
    os.umask(0o777)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    socket.setdefaulttimeout(0.001)
    threading.Thread(target=time.sleep, args=(1000,), daemon=False).start()


@handler("hold_gil")
def hold_gil(data: dict[str, Any], job: Job) -> None:
    """One call into C that keeps the GIL for as long as it takes."""
    write_ledger(job, "start")
    begun = time.monotonic()
    sum(range(5_000_000))
    sum(range(int(5_000_000 * data["seconds"] / (time.monotonic() - begun))))
    write_ledger(job, "end")


@handler("never_ends")
def never_ends(data: dict[str, Any]) -> None:
    while True:
        try:
            time.sleep(1)
        except BaseException:  # noqa: BLE001 - a job that misbehaves
            continue
