"""The shop's own SQL, one statement per file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def shop_statement(name: str) -> bytes:
    """The text of `sql/<name>.sql`; bytes, which psycopg takes as trusted text."""
    return (files("pgq_tui.demo") / "sql" / f"{name}.sql").read_bytes()
