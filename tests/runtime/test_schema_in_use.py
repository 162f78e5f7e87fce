from __future__ import annotations

import psycopg
import pytest

from pgq_core.migrate import migrate
from pgq_core.runtime import schema_in_use, use_database
from pgq_core.settings import load_settings


def test_tables_in_public_are_found_when_nobody_named_a_schema(empty_dsn: str) -> None:
    migrate(empty_dsn, schema="public")

    with use_database(load_settings(dsn=empty_dsn)) as database:
        assert database.schema == "public"


def test_the_usual_schema_wins_where_both_hold_tables(dsn: str) -> None:
    migrate(dsn, schema="public")

    assert schema_in_use(load_settings(dsn=dsn)) == "pgq_core"


def test_a_named_schema_is_never_replaced(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    migrate(empty_dsn, schema="public")

    assert schema_in_use(load_settings(dsn=empty_dsn, db_schema="pgq_core")) == "pgq_core"
    monkeypatch.setenv("PGQ_SCHEMA", "jobs_of_sales")
    assert schema_in_use(load_settings(dsn=empty_dsn)) == "jobs_of_sales"


def test_without_any_tables_or_any_database_it_is_the_usual_one(empty_dsn: str) -> None:
    assert schema_in_use(load_settings(dsn=empty_dsn)) == "pgq_core"
    away = psycopg.conninfo.make_conninfo("", host="127.0.0.1", port=1, dbname="x")
    assert schema_in_use(load_settings(dsn=away)) == "pgq_core"
