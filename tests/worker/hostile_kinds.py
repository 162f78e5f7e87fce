"""Jobs that tear at what they run in: the event loop, the connection of their transaction, the process."""

from __future__ import annotations

import asyncio
import ctypes
import os
import resource
import signal
import threading
from typing import Any

import psycopg

from pgq_core.errors import ClaimLost
from pgq_core.handlers import handler


@handler("exit_in_a_task")
async def exit_in_a_task(data: Any) -> None:
    async def leave() -> None:
        raise SystemExit(0)

    task = asyncio.create_task(leave())
    await asyncio.sleep(30)
    await task


@handler("exit_in_a_callback")
async def exit_in_a_callback(data: Any) -> None:
    def leave() -> None:
        raise KeyboardInterrupt

    asyncio.get_running_loop().call_soon(leave)
    await asyncio.sleep(30)


@handler("cancel_all_tasks")
async def cancel_all_tasks(data: Any) -> None:
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            task.cancel()


@handler("stop_loop")
async def stop_loop(data: Any) -> None:
    asyncio.get_running_loop().stop()


@handler("close_descriptors")
async def close_descriptors(data: Any) -> None:
    os.closerange(3, 4096)


@handler("use_up_descriptors")
def use_up_descriptors(data: Any) -> None:
    try:
        while True:
            os.open(os.devnull, os.O_RDONLY)
    except OSError:
        pass


@handler("forbid_descriptors")
async def forbid_descriptors(data: Any) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    await asyncio.sleep(60)


@handler("terminate_own_process")
def terminate_own_process(data: Any) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@handler("end_thread", timeout=0)
def end_thread(data: Any) -> None:
    """An exception is thrown into the thread when it no longer runs the job."""

    def throw(thread: int | None) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread or 0), ctypes.py_object(SystemExit))

    threading.Timer(0.2, throw, [threading.get_ident()]).start()


def policy(attempt: int, error: BaseException) -> float:
    raise SystemExit("a policy that leaves")


@handler("policy_leaves", retry=policy, timeout=0)
def policy_leaves(data: Any) -> None:
    raise RuntimeError("ask my policy")


@handler("policy_leaves_async", retry=policy, timeout=0)
async def policy_leaves_async(data: Any) -> None:
    raise RuntimeError("ask my policy")


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit("no words")


@handler("unspeakable", timeout=0)
def unspeakable(data: Any) -> None:
    raise Unspeakable


@handler("lose_another_claim")
def lose_another_claim(data: Any) -> None:
    raise ClaimLost(4711)


@handler("lose_another_claim_async")
async def lose_another_claim_async(data: Any) -> None:
    raise ClaimLost(4711)


@handler("lose_another_claim_in_transaction", transactional=True)
async def lose_another_claim_in_transaction(data: Any, conn: psycopg.AsyncConnection[Any]) -> None:
    raise ClaimLost(4711)


@handler("other_database_is_down", transactional=True)
async def other_database_is_down(data: Any, conn: psycopg.AsyncConnection[Any]) -> None:
    await psycopg.AsyncConnection.connect("host=127.0.0.1 port=1 connect_timeout=2")


@handler("other_database_is_down_plain", transactional=True)
def other_database_is_down_plain(data: Any, conn: psycopg.Connection[Any]) -> None:
    psycopg.connect("host=127.0.0.1 port=1 connect_timeout=2")


@handler("close_connection", transactional=True)
async def close_connection(data: Any, conn: psycopg.AsyncConnection[Any]) -> None:
    await conn.close()


@handler("close_connection_plain", transactional=True)
def close_connection_plain(data: Any, conn: psycopg.Connection[Any]) -> None:
    conn.close()
    conn.execute("SELECT 1")


@handler("say", transactional=True)
async def say(data: Any, conn: psycopg.AsyncConnection[Any]) -> None:
    await conn.execute("INSERT INTO public.effects (job_id) VALUES (0)")
    await conn.execute(data["sql"])


@handler("say_plain", transactional=True)
def say_plain(data: Any, conn: psycopg.Connection[Any]) -> None:
    conn.execute("INSERT INTO public.effects (job_id) VALUES (0)")
    conn.execute(data["sql"])


SETTINGS = """
SELECT current_setting('work_mem'), current_setting('search_path'), current_setting('timezone'), current_user,
       (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),
       to_regclass('pg_temp.left_behind')::text, (SELECT count(*) FROM pg_listening_channels())"""
LEAVE_BEHIND = """
SET work_mem = '64kB';
SET search_path = pg_catalog;
SET timezone = 'Asia/Kolkata';
SELECT pg_advisory_lock(1);
CREATE TEMP TABLE left_behind ();
LISTEN left_behind"""


@handler("leave_behind", transactional=True)
async def leave_behind(data: Any, conn: psycopg.AsyncConnection[Any]) -> None:
    await conn.execute(LEAVE_BEHIND)
    conn.row_factory = psycopg.rows.dict_row  # type: ignore[assignment]  # on purpose


@handler("leave_behind_plain", transactional=True)
def leave_behind_plain(data: Any, conn: psycopg.Connection[Any]) -> None:
    conn.execute(LEAVE_BEHIND)
    conn.row_factory = psycopg.rows.dict_row  # type: ignore[assignment]  # on purpose


@handler("look", transactional=True)
async def look(data: Any, conn: psycopg.AsyncConnection[Any]) -> list[Any]:
    return [*(await (await conn.execute(SETTINGS)).fetchone() or ()), conn.info.backend_pid]


@handler("look_plain", transactional=True)
def look_plain(data: Any, conn: psycopg.Connection[Any]) -> list[Any]:
    return [*(conn.execute(SETTINGS).fetchone() or ()), conn.info.backend_pid]
