"""Running a supervisor in this process until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from pgq_core.embedded import EmbeddedServer
from pgq_core.metrics import metrics_server
from pgq_core.runtime import Database, prepare_embedded, schema_in_use
from pgq_tui.supervisor.options import EmbeddedName, SupervisorOptions

LEFTOVERS = 0.1


class Stoppable(Protocol):
    """A running supervisor, as far as what runs beside it needs to know."""

    def stop(self) -> None: ...


def run_supervisor(
    options: SupervisorOptions,
    *,
    on_charge: Callable[[str], None] | None = None,
    beside: Callable[[Stoppable], Coroutine[Any, Any, None]] | None = None,
) -> int:
    """Blocks; owns the event loop and the signals. 0 when asked to stop, 1 when another supervisor took over.

    `on_charge` is told the supervisor's id once it is in charge; `beside` runs along and may call `stop`.
    Raises SupervisorRunning, SchemaError and other PgqErrors when it cannot start; waits for a database that is away.
    """
    with _leased(options) as resolved:
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(_run(resolved, on_charge, beside))
        finally:
            loop.close()


async def _run(
    options: SupervisorOptions,
    on_charge: Callable[[str], None] | None,
    beside: Callable[[Stoppable], Coroutine[Any, Any, None]] | None,
) -> int:
    # Not at the top: a console that only looks for a supervisor need not load all that one is made of.
    from pgq_tui.supervisor.supervisor import Supervisor

    supervisor = Supervisor(options, on_charge=on_charge)
    companions = [asyncio.create_task(beside(supervisor))] if beside else []
    if options.metrics_port is not None:
        server = metrics_server(options.settings, options.metrics_port)
        companions.append(asyncio.create_task(server.run(asyncio.Event())))
    try:
        return await supervisor.run()
    finally:
        # A statement on a connection whose other end is silent cannot be ended at once: leave without it.
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=LEFTOVERS)
        companions.clear()


@contextlib.contextmanager
def _leased(options: SupervisorOptions) -> Iterator[SupervisorOptions]:
    """The embedded server, where one is used, lives at least as long as this supervisor."""
    settings, name = options.settings, options.embedded
    if name is None and settings.dsn is not None:
        found = settings.model_copy(update={"db_schema": schema_in_use(settings)})
        yield options.model_copy(update={"settings": found})
        return
    name = name or EmbeddedName()
    with EmbeddedServer(name.name, name.home).lease() as dsn:
        prepare_embedded(Database(dsn, settings.db_schema, is_embedded=True))
        yield options.model_copy(update={"settings": settings.model_copy(update={"dsn": settings.dsn or dsn})})
