"""What a worker tells everybody: the types it knows, their models and their defaults."""

from __future__ import annotations

import json
import os

from pgq_core.domain.text import describe
from pgq_core.handlers import Handler, Registry
from pgq_core.logs import get_logger
from pgq_core.queries import Queries
from pgq_core.queries.upkeep import AnnouncedType
from pgq_core.service import PeriodicService
from pgq_core.worker.marks import ANNOUNCE_EVERY, Marks, Turn
from pgq_core.worker.writer import Writer


class Announcer(PeriodicService):
    """Announces at the start, and again from time to time."""

    name = "announcer"

    def __init__(self, writer: Writer, queries: Queries, registry: Registry, marks: Marks, *, worker_id: str) -> None:
        super().__init__(interval=ANNOUNCE_EVERY)
        self._marks = marks
        self._writer = writer
        self._queries = queries
        self._registry = registry
        self._worker_id = worker_id

    async def run_once(self) -> None:
        conn = await self._writer.connection()
        await self._queries.announce_types([_announced(handler) for handler in self._registry]).execute(conn)
        statement = self._queries.announce_worker(
            worker_id=self._worker_id, pid=os.getpid(), job_types=self._registry.types
        )
        await statement.execute(conn)
        self._marks.turned(Turn.ANNOUNCE)


def _announced(handler: Handler[..., object]) -> AnnouncedType:
    return AnnouncedType(
        name=handler.type,
        queue=handler.queue,
        model=_schema_text(handler),
        max_attempts=handler.max_attempts,
        timeout=handler.timeout,
        backoff_base=handler.policy.base,
        backoff_cap=handler.policy.cap,
    )


def _schema_text(handler: Handler[..., object]) -> str | None:
    """The model as JSON Schema. A model without one (a validator of a foreign class) still works in the worker."""
    try:
        return None if handler.json_schema is None else json.dumps(handler.json_schema)
    except Exception as error:  # noqa: BLE001 - pydantic raises many kinds, custom types any
        get_logger("pgq.worker").warning("model_has_no_schema", job_type=handler.type, error=describe(error, limit=500))
        return None
