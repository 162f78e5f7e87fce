"""Every statement that ships is understood by the server, against the schema as it is migrated."""

from __future__ import annotations

import re

import psycopg
import pytest

from pgq_core.queries import Queries
from pgq_core.sql import composed_query, query_names


def test_every_statement_can_be_prepared(dsn: str) -> None:
    refused = {}
    with psycopg.connect(dsn, autocommit=True) as conn:
        for name in query_names():
            try:
                conn.execute(f"PREPARE {name} AS {_with_numbered_parameters(composed_query(name, 'pgq_core'))}")
            except psycopg.Error as error:
                refused[name] = str(error)

    assert refused == {}


@pytest.mark.parametrize("name", query_names())
def test_every_statement_has_a_method_of_its_name_and_says_what_it_does(name: str) -> None:
    assert callable(getattr(Queries, name, None))
    assert composed_query(name, "pgq_core").startswith("-- ")


def _with_numbered_parameters(text: str) -> str:
    numbers: dict[str, str] = {}
    numbered = re.sub(r"%\((\w+)\)s", lambda found: numbers.setdefault(found[1], f"${len(numbers) + 1}"), text)
    return numbered.replace("%%", "%")
