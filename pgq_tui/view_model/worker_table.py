"""Pools and workers as a table: how many, how busy, how heavy, how they ended."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime

from rich.text import Text

from pgq_core.domain.snapshot import Overview, PoolView, WorkerView
from pgq_tui.view_model.figures import format_bytes, format_count, format_load, format_percent
from pgq_tui.view_model.fleet import (
    FleetPool,
    exit_words,
    fleet,
    pool_name,
    pool_state,
    short_worker_name,
    worker_key,
    worker_state,
)
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.rows import TableColumn, TableRow
from pgq_tui.view_model.safe_text import cell
from pgq_tui.view_model.sparks import bar_text
from pgq_tui.view_model.status import status_look
from pgq_tui.view_model.times import MISSING, format_coarse, format_span
from pgq_tui.view_model.word_filter import matching_workers

LOAD_WIDTH = 12
HOT_CPU = 85.0
MUCH_MEMORY = 768 * 1024**2
MANY_FAILURES = 0.2
WORKER_COLUMNS = (
    TableColumn("name", "POOL / WORKER", 16, flex=2),
    TableColumn("state", "STATE", 17, flex=1),
    TableColumn("queues", "QUEUES", 12, flex=3, drop=4),
    TableColumn("slots", "SLOTS", 7, is_right=True),
    TableColumn("load", "LOAD", LOAD_WIDTH, drop=7),
    TableColumn("cpu", "CPU%", 5, is_right=True),
    TableColumn("rss", "RSS", 5, is_right=True),
    TableColumn("done", "RUNS", 6, is_right=True, drop=3),
    TableColumn("fail", "FAIL%", 5, is_right=True, drop=5),
    TableColumn("up", "UP", 6, is_right=True),
    TableColumn("beat", "BEAT", 4, is_right=True, drop=6),
    TableColumn("restarts", "RST", 3, is_right=True, drop=2),
    TableColumn("exit", "EXIT", 8, flex=2, drop=1),
)
PANE_COLUMNS = (
    TableColumn("name", "POOL", 8, flex=1),
    TableColumn("state", "STATE", 15, flex=1),
    TableColumn("load", "LOAD", LOAD_WIDTH, drop=1),
    TableColumn("slots", "SLOTS", 7, is_right=True),
    TableColumn("cpu", "CPU%", 4, is_right=True, drop=3),
    TableColumn("rss", "RSS", 4, is_right=True, drop=2),
)
"""The same for the dashboard: pools alone, in half the width."""

Put = Callable[..., Text]


def worker_rows(
    view: Overview,
    palette: Palette,
    *,
    words: Sequence[str] = (),
    kept: Collection[str] = (),
    glyphs: Glyphs = UNICODE,
) -> list[TableRow]:
    """Each pool and below it its workers, those alone that the words are about. `kept`: keys of ended ones to show."""
    put = _put(palette, glyphs)
    rows = []
    for every in fleet(view, kept):
        group = matching_workers(every, words, view)
        if group is None:
            continue
        rows.append(_pool_row(group, view.taken_at, put, palette, glyphs, pools=view.pools))
        rows += [_worker_row(worker, view.taken_at, put, palette, glyphs) for worker in group.workers]
    return rows


def pane_rows(view: Overview, palette: Palette, *, glyphs: Glyphs = UNICODE) -> list[TableRow]:
    """One row for each pool, for the dashboard."""
    put = _put(palette, glyphs)
    groups = fleet(view)
    return [_pane_row(group, view.taken_at, put, palette, glyphs, pools=view.pools) for group in groups]


def _put(palette: Palette, glyphs: Glyphs) -> Put:
    def put(text: str, token: Token = Token.TEXT) -> Text:
        return cell(text, palette.style(token), glyphs=glyphs)

    return put


def _pool_row(
    group: FleetPool, now: datetime, put: Put, palette: Palette, glyphs: Glyphs, *, pools: Sequence[PoolView]
) -> TableRow:
    pool = group.pool
    state, words, token = _pool_look(group, now, glyphs)
    return TableRow(
        group.key,
        (
            put(f"{glyphs.down if group.workers else ' '} {_pool_name(group, pools=pools)}", Token.ACCENT),
            put(f"{state} {words}", token),
            put(",".join(pool.queues) if pool else "", Token.DIM),
            _slots(group.busy, group.slots, put),
            bar_text(_share(group.busy, group.slots), LOAD_WIDTH, palette, glyphs=glyphs),
            put("", Token.DIM),
            put(format_bytes(_total(worker.rss_bytes for worker in group.live), short=True), Token.DIM),
            put("", Token.DIM),
            put("", Token.DIM),
            put("", Token.DIM),
            put("", Token.DIM),
            put(str(pool.restarts) if pool else "", Token.RETRY if pool and pool.restarts else Token.DIM),
            put(pool.state_detail or "" if pool else "", Token.FAILED),
        ),
    )


def _worker_row(worker: WorkerView, now: datetime, put: Put, palette: Palette, glyphs: Glyphs) -> TableRow:
    word = worker_state(worker)
    look = status_look("ok" if word == "running" else word, glyphs)
    is_live = worker.stopped_at is None
    lived = (worker.stopped_at or now) - worker.started_at
    branch = "  " if not is_live else "| " if glyphs.is_ascii else "│ "
    return TableRow(
        worker_key(worker),
        (
            put(f"{branch}{short_worker_name(worker)}", Token.TEXT if is_live else Token.DIM),
            put(f"{look.icon} {'up' if word == 'running' else word}", look.token),
            put(",".join(worker.queues), Token.DIM),
            _slots(worker.running, worker.concurrency, put) if is_live else put(MISSING, Token.DIM),
            bar_text(_share(worker.running, worker.concurrency) if is_live else 0, LOAD_WIDTH, palette, glyphs=glyphs),
            _cpu(worker.cpu_percent if is_live else None, put),
            _memory(worker.rss_bytes if is_live else None, put),
            put(format_count(worker.runs), Token.TEXT if worker.runs else Token.DIM),
            _failures(worker, put),
            put(format_span(lived), Token.DIM),
            put(format_coarse(now - worker.heartbeat_at), Token.FAILED if worker.is_stale and is_live else Token.DIM),
            put("", Token.DIM),
            put(exit_words(worker), Token.FAILED if word in {"crashed", "lost"} else Token.DIM),
        ),
    )


def _pane_row(
    group: FleetPool, now: datetime, put: Put, palette: Palette, glyphs: Glyphs, *, pools: Sequence[PoolView]
) -> TableRow:
    state, words, token = _pool_look(group, now, glyphs)
    cpu = _total(worker.cpu_percent for worker in group.live)
    return TableRow(
        group.key,
        (
            put(_pool_name(group, pools=pools)),
            put(f"{state} {words}", token),
            bar_text(_share(group.busy, group.slots), LOAD_WIDTH, palette, glyphs=glyphs),
            _slots(group.busy, group.slots, put),
            put(MISSING if cpu is None else f"{cpu:.0f}", Token.DIM if cpu is None else Token.TEXT),
            put(format_bytes(_total(worker.rss_bytes for worker in group.live), short=True), Token.DIM),
        ),
    )


def _pool_look(group: FleetPool, now: datetime, glyphs: Glyphs) -> tuple[str, str, Token]:
    if group.pool is None:
        look = status_look("ok" if group.live else "idle", glyphs)
        return look.icon, f"{len(group.live)} live", look.token
    word, words = pool_state(group.pool, now)
    look = status_look(word, glyphs)
    return look.icon, words, look.token


def _pool_name(group: FleetPool, *, pools: Sequence[PoolView]) -> str:
    return pool_name(group.pool, pools) if group.pool else "no pool"


def _slots(busy: int, slots: int, put: Put) -> Text:
    return put(format_load(busy, slots), Token.RUNNING if busy else Token.DIM)


def _share(busy: int, slots: int) -> float:
    return busy / slots if slots else 0.0


def _cpu(percent: float | None, put: Put) -> Text:
    if percent is None:
        return put(MISSING, Token.DIM)
    return put(f"{percent:.0f}", Token.RETRY if percent >= HOT_CPU else Token.TEXT)


def _memory(size: int | None, put: Put) -> Text:
    if size is None:
        return put(MISSING, Token.DIM)
    return put(format_bytes(size, short=True), Token.RETRY if size >= MUCH_MEMORY else Token.TEXT)


def _failures(worker: WorkerView, put: Put) -> Text:
    if not worker.runs:
        return put(MISSING, Token.DIM)
    share = worker.failed / worker.runs
    return put(
        format_percent(share, unit=""), Token.RETRY if share >= MANY_FAILURES else Token.TEXT if share else Token.DIM
    )


def _total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
