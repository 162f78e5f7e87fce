"""Handlers that do nothing but count their starts; imported by our runner."""

from __future__ import annotations

import os
import threading

from peer import Recorder

from pgq_core import handler, on_startup

NOOP = "noop"
NOOP_IN_A_THREAD = "noop_in_a_thread"
SLOT_VARIABLE = "BENCH_SLOT"

recorders: list[Recorder] = []
lock = threading.Lock()


@on_startup
def open_recorder(_: dict) -> None:
    path, slot, with_stamps = os.environ[SLOT_VARIABLE].rsplit(":", 2)
    recorders.append(Recorder(path, int(slot), with_stamps=with_stamps == "1"))


@handler(NOOP)
async def noop(data: dict) -> None:
    recorders[0].hit(data["n"])


@handler(NOOP_IN_A_THREAD)
def noop_in_a_thread(data: dict) -> None:
    with lock:
        recorders[0].hit(data["n"])
