"""The shipped statements as the server sees them: prepared, with numbered parameters."""

from __future__ import annotations

import inspect
import re

from pgq_core.queries import Queries
from pgq_core.queries.statement import QueryGroup
from pgq_core.sql import composed_query, query_names
from tests.schema.sessions import Session

_PARAMETER = re.compile(r"%(?:\((\w+)\)s|%)")


def numbered(name: str, schema: str) -> tuple[str, list[str]]:
    """The statement with `$n` in place of `%(name)s`, and the names in the order of their numbers."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    return _PARAMETER.sub(number, composed_query(name, schema)), names


def prepare(conn: Session, name: str, schema: str) -> int:
    """Prepares the statement under its name; answers how many parameters it has."""
    text, names = numbered(name, schema)
    conn.execute(f"PREPARE {name} AS {text}")
    return len(names)


def explain(conn: Session, name: str, schema: str) -> None:
    """Plans the statement and asks for the rights that running it would need, without running it."""
    count = prepare(conn, name, schema)
    arguments = f"({', '.join(['NULL'] * count)})" if count else ""
    conn.execute("SET plan_cache_mode = force_generic_plan")
    conn.execute(f"EXPLAIN EXECUTE {name}{arguments}")
    conn.execute(f"DEALLOCATE {name}")


def _by_group() -> dict[str, list[str]]:
    """Statement names by the module whose group has the method of that name."""
    known = set(query_names())
    groups: dict[str, list[str]] = {}
    for group in inspect.getmro(Queries):
        if issubclass(group, QueryGroup) and group not in {Queries, QueryGroup}:
            module = group.__module__.rpartition(".")[2]
            text = inspect.getsource(group)
            groups.setdefault(module, []).extend(name for name in re.findall(r'"(\w+)"', text) if name in known)
    return groups


PREPARED = _by_group()
