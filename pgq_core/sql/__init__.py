"""The SQL texts: one statement per file in `queries/`, the numbered steps of the schema in `migrations/`.

`schema/` holds what surrounds a step.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from psycopg import sql


@cache
def query_text(name: str) -> str:
    """The text of `queries/<name>.sql` as it stands in the file."""
    return (files(__package__) / "queries" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def partition_text(name: str) -> str:
    """The text of `partitions/<name>.sql`: statements about a table, whose name is put in by the caller."""
    return (files(__package__) / "partitions" / f"{name}.sql").read_text(encoding="utf-8")


def query_names() -> list[str]:
    folder = files(__package__) / "queries"
    return sorted(entry.name.removesuffix(".sql") for entry in folder.iterdir() if entry.name.endswith(".sql"))


@cache
def composed_query(name: str, schema: str) -> str:
    """The statement with its objects qualified by `schema`: a transaction-mode pooler drops a search_path."""
    identifier = sql.Identifier(schema)
    tokens = sql.Literal(f"{identifier.as_string(None)}.claim_token_seq")
    parts = {"schema": beside_parameters(identifier), "token_sequence": beside_parameters(tokens)}
    return sql.SQL(query_text(name)).format(**parts).as_string(None)


def beside_parameters(part: sql.Composable) -> sql.SQL:
    """As it is written in a statement with parameters, where a per cent sign would begin one."""
    return sql.SQL(part.as_string(None).replace("%", "%%"))


_PARAMETER = re.compile(r"%(?:\((\w+)\)s|%)")


@cache
def numbered_query(name: str, schema: str) -> tuple[bytes, tuple[str, ...]]:
    """The composed statement as the server itself reads it, `$1` for `%(name)s`, and the names in their order."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%"
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}"

    text = _PARAMETER.sub(number, composed_query(name, schema))
    return text.encode(), tuple(names)


def schema_statement(name: str, schema: str, /, **parts: sql.Composable) -> str:
    """`schema/<name>.sql`, a statement that cannot be prepared, with `{schema}` and further parts filled in."""
    text = (files(__package__) / "schema" / f"{name}.sql").read_text(encoding="utf-8")
    known = {"schema": sql.Identifier(schema), "schema_name": sql.Literal(schema)}
    return sql.SQL(text).format(**known, **parts).as_string(None)


def migration_files() -> list[tuple[int, str, str]]:
    """(version, name, text) of each shipped migration, ascending."""
    folder = files(__package__) / "migrations"
    found = [
        (int(entry.name[:4]), entry.name.removesuffix(".sql"), entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    ]
    return sorted(found)
