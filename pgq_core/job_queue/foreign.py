"""The driver's connection under what frameworks hand around: connections and sessions of SQLAlchemy, Django's.

Told apart by what they can do, so that none of them has to be installed.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from psycopg import AsyncConnection, Connection

CallersConnection: TypeAlias = Any
"""psycopg's own, or one of those."""


def driver_connection(given: Any) -> Connection[Any]:  # noqa: ANN401 - whatever a caller has
    """Raises TypeError where there is no psycopg connection underneath."""
    found = _of_django(given) if hasattr(given, "ensure_connection") else _of_sqlalchemy(given)
    if not isinstance(found, Connection):
        raise TypeError(_refusal("Connection", given, found))
    return found


async def async_driver_connection(given: Any) -> AsyncConnection[Any]:  # noqa: ANN401 - whatever a caller has
    """The same for an AsyncConnection or an AsyncSession of SQLAlchemy."""
    found, opened = given, given
    if not hasattr(given, "get_raw_connection") and callable(getattr(given, "connection", None)):  # a session
        opened = await given.connection()
    if hasattr(opened, "get_raw_connection"):
        if not opened.in_transaction():
            await opened.begin()
        found = (await opened.get_raw_connection()).driver_connection
    if not isinstance(found, AsyncConnection):
        raise TypeError(_refusal("AsyncConnection", given, found))
    return found


def _of_django(given: Any) -> object:  # noqa: ANN401
    given.ensure_connection()
    return given.connection


def _of_sqlalchemy(given: Any) -> object:  # noqa: ANN401
    opened = given
    if callable(getattr(given, "connection", None)):  # a session
        opened = given.connection()
    if not hasattr(opened, "in_transaction") or not hasattr(opened, "connection"):
        return given
    # What SQLAlchemy has not begun it would not commit: our statement goes past it.
    if not opened.in_transaction():
        opened.begin()
    return opened.connection.driver_connection


def _refusal(wanted: str, given: object, found: object) -> str:
    text = f"conn is a psycopg.{wanted} here, not a {type(given).__name__}"
    if found is not given and found is not None:
        text += f" over a {type(found).__module__}.{type(found).__name__}"
    return f"{text}; SQLAlchemy's or Django's over one will do; for another driver there is the SQL function enqueue"
