"""Database roles of a test, apart from the owner of everything that the tests connect as."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

PASSWORD = "only-for-tests"

_numbers = itertools.count(1)


@contextlib.contextmanager
def new_role(dsn: str) -> Iterator[str]:
    """A role that may log in and owns nothing; dropped at the end with what it was granted in this database."""
    role = f"pgq_test_role_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(PASSWORD)))
    try:
        yield role
    finally:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)))
            conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def dsn_of(role: str, dsn: str, **others: str) -> str:
    """The same database, as that role."""
    return make_conninfo(dsn, user=role, password=PASSWORD, **others)
