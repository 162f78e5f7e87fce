"""A schema may have any name that PostgreSQL takes."""

from __future__ import annotations

import pytest

from pgq_core import JobQueue
from pgq_core.maintenance import Maintenance
from pgq_core.migrate import migrate
from pgq_core.settings import load_settings
from tests.support.databases import new_database


@pytest.mark.parametrize("schema", ["a%b", "100%", "a%s", "x%%y", "weird-Schema", 'a"b', "quo'te", "{br}"])
async def test_a_job_lives_and_is_maintained_in_it(server_dsn: str, schema: str) -> None:
    with new_database(server_dsn) as dsn:
        migrate(dsn, schema)
        with JobQueue(dsn, schema=schema) as queue:
            job = queue.enqueue("noop", {"n": 1}, idempotency_key="k")
            (claimed,) = queue.claim()
            assert claimed.id == job.id
            queue.complete(claimed)
        maintenance = Maintenance(load_settings(dsn=dsn, db_schema=schema))
        for duty in maintenance.duties:
            await duty.run_once()
        await maintenance.close()
