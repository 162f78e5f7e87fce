"""The shipped statements as the server sees them: prepared, with numbered parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from psycopg import sql

from pgq_core.queries import Queries, Statement
from pgq_core.queries.statement import QueryGroup
from pgq_core.sql import composed_query, query_names
from tests.schema.sessions import Session

RUNS_BEFORE_A_GENERIC_PLAN = 5
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


def executed_plan(conn: Any, statement: Statement[Any], schema: str) -> Mapping[str, Any]:
    """Runs the statement as often as the server needs to settle on a plan, and undoes what it did."""
    text, names = numbered(statement.name, schema)
    literals = ", ".join(sql.Literal(statement.params[name]).as_string(conn) for name in names)
    call = f"EXECUTE measured({literals})" if names else "EXECUTE measured"
    conn.execute(f"PREPARE measured AS {text}")
    if statement.prepare:
        for _ in range(RUNS_BEFORE_A_GENERIC_PLAN):
            with conn.transaction(force_rollback=True):
                conn.execute(call)
    else:
        conn.execute("SET plan_cache_mode = force_custom_plan")
    with conn.transaction(force_rollback=True):
        answer = conn.execute(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {call}").fetchone()
    plan: Mapping[str, Any] = answer[0][0]
    return plan


def walk(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from walk(child)


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
