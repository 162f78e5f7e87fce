"""A migrated schema of its own for one test session."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import Final

from pgq_core.database import connect_sync
from pgq_core.embedded import EmbeddedServer
from pgq_core.migrate import migrate
from pgq_core.testing.statements import TestingStatements

DSN_VARIABLE: Final = "PGQ_TEST_DSN"
PREFIX: Final = "pgq_test_"
# What a test stores has to survive its processes, not the machine.
_FAST: Final = {"fsync": "off", "full_page_writes": "off"}


@contextlib.contextmanager
def server_for_tests() -> Iterator[str]:
    """The address in `PGQ_TEST_DSN`, or an embedded server that all test sessions of this user share."""
    given = os.environ.get(DSN_VARIABLE)
    if given:
        yield given
        return
    with EmbeddedServer("tests", settings=_FAST).lease() as dsn:
        yield dsn


@contextlib.contextmanager
def session_schema(dsn: str) -> Iterator[str]:
    """The name of a new schema with our tables, dropped at the end; those of killed sessions are dropped as well."""
    name = f"{PREFIX}{os.getpid()}_{secrets.token_hex(4)}"
    statements = TestingStatements(name)
    with connect_sync(dsn, application_name="pgq testing") as conn:
        statements.hold_schema().execute_sync(conn)
        for abandoned in statements.list_abandoned_schemas(PREFIX).fetch_all_sync(conn):
            if abandoned != name:
                TestingStatements(abandoned).drop_schema().execute_sync(conn)
        migrate(dsn, schema=name)
        try:
            yield name
        finally:
            statements.drop_schema().execute_sync(conn)
