"""The supervisor of this host: found, or started when this host has pools and nobody keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from pgq_core.runtime import Database
from pgq_core.settings import Settings
from pgq_tui.screens.leaving import LocalWorkers
from pgq_tui.supervisor import (
    EmbeddedName,
    Fate,
    PoolsFileMissing,
    SupervisorNotStarted,
    SupervisorOptions,
    default_pools_file,
    fate_of,
    find_running,
    load_pools,
    start_detached,
    stop_detached,
)

PATIENCE = 5.0
"""Seconds beyond the grace of its workers until a supervisor that was asked to stop is left alone."""


async def bring_up_workers(
    settings: Settings, given: Database, find_schema: Callable[[], Awaitable[str]]
) -> LocalWorkers | None:
    """The supervisor started here; None when this host has no pools, or another one keeps them already.

    `find_schema` asks the database, which nobody does for a host without pools.
    Raises InvalidSettings for a pools file with faults, SupervisorNotStarted, DatabaseUnavailable.
    """
    try:
        pools = await asyncio.to_thread(load_pools, default_pools_file())
    except PoolsFileMissing:
        return None
    database = replace(given, schema=await find_schema())
    embedded = EmbeddedName() if database.is_embedded else None
    with_address = settings.model_copy(update={"dsn": database.dsn, "db_schema": database.schema})
    options = SupervisorOptions(settings=with_address, pools=pools, embedded=embedded)
    running = await find_running(
        database.dsn, database.schema, options.host, stale_limit=settings.stale_limit, state_dir=options.state_dir
    )
    if running is not None:
        return None
    try:
        started = await asyncio.to_thread(start_detached, options)
    except SupervisorNotStarted as error:
        if error.is_running:
            return None
        raise

    async def stop() -> bool:
        patience = options.longest_grace + PATIENCE
        return await asyncio.to_thread(
            stop_detached, database.dsn, database.schema, options.host, timeout=patience, state_dir=options.state_dir
        )

    async def fate() -> Fate:
        found = (database.dsn, database.schema, options.host, started.supervisor_id)
        return await fate_of(*found, state_dir=options.state_dir)

    return LocalWorkers(options.host, started.supervisor_id, stop, fate)
