"""One SQL statement with its parameters and the type of its rows; running it is the caller's part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor
from psycopg.rows import class_row, no_result, scalar_row, tuple_row

from pgq_core.sql import composed_query

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Statement(Generic[T]):
    """`queries/<name>.sql`, bound to a schema and parameters. Rows come back as `row` objects, by column name.

    The same statement runs on an asynchronous or on a plain connection, so that both faces of the queue share it.
    Always with a cursor of the driver's plain kind: a caller's connection may make others, which write parameters
    another way.
    Errors of the driver pass through untranslated.
    """

    name: str
    text: str
    params: Mapping[str, Any]
    row: type[T] | None
    prepare: bool = True
    """False: planned anew for its parameters at each run, for lists whose best index depends on the filters given."""

    @property
    def binary(self) -> bool:
        """Whether rows come in binary form: for tuples, of which there are many (it halves the driver's time)."""
        return self.row is not None and issubclass(self.row, tuple)

    async def fetch_all(self, conn: AsyncConnection[Any]) -> list[T]:
        async with AsyncCursor(conn, row_factory=self._factory()) as cursor:
            await cursor.execute(self.text, self.params, prepare=self.prepare, binary=self.binary)
            return await cursor.fetchall()

    async def fetch_one(self, conn: AsyncConnection[Any]) -> T | None:
        async with AsyncCursor(conn, row_factory=self._factory()) as cursor:
            await cursor.execute(self.text, self.params, prepare=self.prepare, binary=self.binary)
            return await cursor.fetchone()

    async def start(self, conn: AsyncConnection[Any]) -> AsyncCursor[T]:
        """Inside `conn.pipeline()`: sends the statement and does not wait for its rows."""
        cursor = AsyncCursor(conn, row_factory=self._factory())
        await cursor.execute(self.text, self.params, prepare=self.prepare, binary=self.binary)
        return cursor

    async def execute(self, conn: AsyncConnection[Any]) -> int:
        """Runs the statement for its effect; returns the number of rows it touched."""
        async with AsyncCursor(conn, row_factory=tuple_row) as cursor:
            await cursor.execute(self.text, self.params, prepare=self.prepare)
            return cursor.rowcount

    def fetch_all_sync(self, conn: Connection[Any]) -> list[T]:
        with Cursor(conn, row_factory=self._factory()) as cursor:
            cursor.execute(self.text, self.params, prepare=self.prepare, binary=self.binary)
            return cursor.fetchall()

    def fetch_one_sync(self, conn: Connection[Any]) -> T | None:
        with Cursor(conn, row_factory=self._factory()) as cursor:
            cursor.execute(self.text, self.params, prepare=self.prepare, binary=self.binary)
            return cursor.fetchone()

    def execute_sync(self, conn: Connection[Any]) -> int:
        with Cursor(conn, row_factory=tuple_row) as cursor:
            cursor.execute(self.text, self.params, prepare=self.prepare)
            return cursor.rowcount

    def _factory(self) -> Any:  # noqa: ANN401  # psycopg's row factories are typed per cursor
        if self.row is None or self.row in _SCALARS:
            return scalar_row
        if issubclass(self.row, tuple):
            return _named_rows(self.row)
        return class_row(self.row)


_SCALARS = frozenset((int, str, bool, float))


def _named_rows(row: Any) -> Any:  # noqa: ANN401  # a NamedTuple class has no type of its own
    """Rows of a NamedTuple: still by column name, but looked up once per answer instead of once per row."""

    fields = list(row._fields)

    def factory(cursor: Cursor[Any] | AsyncCursor[Any]) -> Any:  # noqa: ANN401  # as psycopg's own factories
        # Not by the driver's description: it makes an object per column, a quarter of what an empty claim cost.
        result = cursor.pgresult
        if result is None or not result.nfields:
            return no_result
        names = [(result.fname(number) or b"").decode() for number in range(result.nfields)]
        if names == fields:
            return partial(tuple.__new__, row)
        order = [names.index(field) for field in row._fields]
        return lambda values: tuple.__new__(row, [values[index] for index in order])

    return factory


class QueryGroup:
    """Base of the groups that make up `Queries`: method name = file name."""

    def __init__(self, schema: str) -> None:
        self.schema = schema

    def _statement(self, name: str, row: type[T] | None = None, /, **params: object) -> Statement[T]:
        return Statement(name, composed_query(name, self.schema), params, row)

    def _planned_anew(self, name: str, row: type[T] | None = None, /, **params: object) -> Statement[T]:
        return Statement(name, composed_query(name, self.schema), params, row, prepare=False)
