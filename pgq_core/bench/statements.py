"""The statements only a benchmark runs: `sql/bench/<name>.sql`, bound like the others."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import TypeVar

from psycopg import sql
from psycopg.types.json import Jsonb

from pgq_core.queries import Statement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ServerSetting:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Connections:
    name: str
    connections: int


@dataclass(frozen=True, slots=True)
class WalPosition:
    position: str
    bytes: float


@dataclass(frozen=True, slots=True)
class TableCounters:
    """Row versions and commits of a database so far."""

    inserted: int
    updated: int
    updated_in_place: int
    deleted: int
    dead: int
    commits: int


@dataclass(frozen=True, slots=True)
class RelationWal:
    relation: str
    bytes: float
    page_images: float


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Percentiles (p50, p95, p99) in seconds; None without runs."""

    runs: int
    jobs: int
    to_start: list[float] | None
    to_finish: list[float] | None


@dataclass(frozen=True, slots=True)
class RunsInTime:
    runs: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class RunsOfSecond:
    second: int
    runs: int


class BenchStatements:
    """Method name = file name."""

    def __init__(self, schema: str, queue: str) -> None:
        self._schema = schema
        self._queue = queue

    def fill_jobs(
        self,
        *,
        first: int,
        stop: int,
        job_type: str,
        data: dict[str, float],
        queue: str | None = None,
        priority: int = 0,
        delay: timedelta = timedelta(0),
    ) -> Statement[int]:
        return self._bound(
            "fill_jobs",
            int,
            first=first,
            stop=stop,
            job_type=job_type,
            data=Jsonb(data),
            queue=queue or self._queue,
            priority=priority,
            delay=delay,
        )

    def has_jobs(self) -> Statement[bool]:
        return self._bound("has_jobs", bool, queue=self._queue)

    def pause_queue(self) -> Statement[str]:
        return self._bound("pause_queue", str, queue=self._queue)

    def resume_queue(self) -> Statement[str]:
        return self._bound("resume_queue", str, queue=self._queue)

    def count_ready_workers(self) -> Statement[int]:
        return self._bound("count_ready_workers", int)

    def count_waiting_workers(self) -> Statement[int]:
        return self._bound("count_waiting_workers", int)

    def list_connections(self) -> Statement[Connections]:
        return self._bound("list_connections", Connections)

    def read_server(self) -> Statement[ServerSetting]:
        return self._bound("read_server", ServerSetting)

    def read_wal_position(self) -> Statement[WalPosition]:
        return self._bound("read_wal_position", WalPosition)

    def read_table_counters(self) -> Statement[TableCounters]:
        return self._bound("read_table_counters", TableCounters)

    def read_wal_by_relation(self, start: str, stop: str, *, window: int) -> Statement[RelationWal]:
        return self._bound("read_wal_by_relation", RelationWal, start=start, stop=stop, window=window)

    def read_run_times(self) -> Statement[RunTimes]:
        return self._bound("read_run_times", RunTimes, queue=self._queue)

    def read_rate_of_first_runs(self, runs: int) -> Statement[RunsInTime]:
        return self._bound("read_rate_of_first_runs", RunsInTime, queue=self._queue, runs=runs)

    def list_rates(self) -> Statement[RunsOfSecond]:
        return self._bound("list_rates", RunsOfSecond, queue=self._queue)

    def read_clock(self) -> Statement[float]:
        return self._bound("read_clock", float)

    def checkpoint(self) -> Statement[int]:
        return self._bound("checkpoint")

    def analyze_jobs(self) -> Statement[int]:
        return self._bound("analyze_jobs")

    def _bound(self, name: str, row: type[T] | None = None, /, **params: object) -> Statement[T]:
        return Statement(name, _composed(name, self._schema), params, row, prepare=False)


def create_database(name: str, template: str) -> Statement[int]:
    text = _text("create_database").format(database=sql.Identifier(name), template=sql.Identifier(template))
    return Statement("create_database", text.as_string(None), {}, None, prepare=False)


def drop_database(name: str) -> Statement[int]:
    text = _text("drop_database").format(database=sql.Identifier(name))
    return Statement("drop_database", text.as_string(None), {}, None, prepare=False)


def list_databases(prefix: str) -> Statement[str]:
    return Statement("list_databases", _text("list_databases").as_string(None), {"prefix": prefix}, str, prepare=False)


def add_wal_inspection() -> Statement[int]:
    return Statement("add_wal_inspection", _text("add_wal_inspection").as_string(None), {}, None, prepare=False)


@cache
def _composed(name: str, schema: str) -> str:
    parts = {"schema": sql.Identifier(schema), "schema_name": sql.Literal(schema)}
    return _text(name).format(**parts).as_string(None)


def _text(name: str) -> sql.SQL:
    return sql.SQL((files("pgq_core.sql") / "bench" / f"{name}.sql").read_text(encoding="utf-8"))
