"""The door: is a job's type known, and does its data fit the model that workers announced for it?"""

from __future__ import annotations

import asyncio
import difflib
import itertools
import re
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as time_of_day
from typing import Any, Final
from uuid import UUID

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError as Misfit
from psycopg import AsyncConnection
from pydantic import TypeAdapter, ValidationError
from referencing import Registry

from pgq_core.api.connections import Connections
from pgq_core.api.problems import FieldError, unprocessable
from pgq_core.domain.job import JSON
from pgq_core.domain.text import describe
from pgq_core.logs import get_logger
from pgq_core.queries import Queries
from pgq_core.queries.tokens import JobTypeRow

FRESH_FOR: Final = 5.0
"""Seconds after which an announced type is read again."""
STRANGE_FOR: Final = 0.5
"""The same for an unknown one that was let in. One that was refused is looked for each time."""
_MOST_REMEMBERED: Final = 1000
_MOST_NAMES: Final = 1000
_MOST_ERRORS: Final = 50
_LARGE: Final = 32 * 1024
_LONGEST_PART: Final = 100

_FORMATS: Final[Mapping[str, TypeAdapter[Any]]] = {
    "date-time": TypeAdapter(datetime),
    "date": TypeAdapter(date),
    "time": TypeAdapter(time_of_day),
    "duration": TypeAdapter(timedelta),
    "uuid": TypeAdapter(UUID),
}
"""Judged as the worker's own validation judges them."""


@dataclass(frozen=True, slots=True)
class KnownType:
    """An announced type; `model` None: any data will do."""

    row: JobTypeRow
    model: Draft202012Validator | None


class JobTypes:
    """Announced types, each remembered for a few seconds: most requests need no look at the database."""

    def __init__(self, queries: Queries, connections: Connections, *, accept_unknown: bool) -> None:
        self._queries = queries
        self._connections = connections
        self._accept_unknown = accept_unknown
        self._known: OrderedDict[str, tuple[float, KnownType]] = OrderedDict()
        self._strangers: dict[str, float] = {}
        self._logger = get_logger("pgq.api")

    async def admitted(self, name: str, data: JSON, *, size: int) -> JobTypeRow | None:
        """What is known of the type; None when it may wait for a worker that knows it. Raises a 422 otherwise.

        `size`: bytes of the request, since large data is looked at beside the event loop.
        """
        remembered = self._known.get(name)
        if remembered is not None and time.monotonic() < remembered[0]:
            known: KnownType | None = remembered[1]
        elif time.monotonic() < self._strangers.get(name, 0.0):
            return None
        else:
            async with self._connections.connection() as conn:
                known = await self._found(conn, name)
        if known is None:
            return None
        if known.model is not None:
            misfits = _misfits(known.model, data)
            await self._judge(known, asyncio.to_thread(list, misfits) if size > _LARGE else _now(misfits))
        return known.row

    async def _judge(self, known: KnownType, looking: Any) -> None:  # noqa: ANN401 - a coroutine or a future of errors
        try:
            errors = await looking
        except Exception as error:  # noqa: BLE001 - a schema that cannot be used may fail in any way; the worker checks again
            self._logger.warning("model_cannot_be_used", job_type=known.row.name, error=describe(error, limit=500))
            return
        if errors:
            raise unprocessable(*errors)

    async def _found(self, conn: AsyncConnection[Any], name: str) -> KnownType | None:
        """None for a type that is unknown and may wait."""
        row = await self._queries.find_job_type(name=name).fetch_one(conn)
        if row is None:
            self._known.pop(name, None)
            if not self._accept_unknown:
                await self._refuse_unknown(conn, name)
            self._remember_stranger(name)
            return None
        known = self._as_before(row, self._known.get(name)) or KnownType(row, self._usable_model(row))
        self._known[name] = (time.monotonic() + FRESH_FOR, known)
        if len(self._known) > _MOST_REMEMBERED:
            self._known.popitem(last=False)
        return known

    def _remember_stranger(self, name: str) -> None:
        if len(self._strangers) >= _MOST_REMEMBERED:
            self._strangers.clear()
        self._strangers[name] = time.monotonic() + STRANGE_FOR

    def _as_before(self, row: JobTypeRow, remembered: tuple[float, KnownType] | None) -> KnownType | None:
        return remembered[1] if remembered is not None and remembered[1].row == row else None

    def _usable_model(self, row: JobTypeRow) -> Draft202012Validator | None:
        if not isinstance(row.model, dict):
            return None
        try:
            Draft202012Validator.check_schema(row.model)
        except Exception as error:  # noqa: BLE001 - plain SQL may have put anything there
            self._logger.warning("model_is_no_schema", job_type=row.name, error=describe(error, limit=500))
            return None
        # An empty registry: a reference to somewhere else is never fetched.
        return Draft202012Validator(row.model, registry=Registry(), format_checker=_checker())

    async def _refuse_unknown(self, conn: AsyncConnection[Any], name: str) -> None:
        names = await self._queries.list_type_names(limit=_MOST_NAMES).fetch_all(conn)
        if not names:
            return  # no worker has ever run: nobody can say what is known
        near = difflib.get_close_matches(name, names, n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise unprocessable(FieldError(field="type", message=f"no worker ever announced this type{hint}"))


async def _now(misfits: Iterable[FieldError]) -> list[FieldError]:
    return list(misfits)


def _misfits(model: Draft202012Validator, data: JSON) -> Iterable[FieldError]:
    found = (error for misfit in model.iter_errors(data) for error in _errors(misfit))
    return itertools.islice(found, _MOST_ERRORS)


def _errors(misfit: Misfit) -> Iterable[FieldError]:
    path = _path(misfit)
    if misfit.validator != "required":
        yield FieldError(field=path, message=_message(misfit))
        return
    # One error per missing field, named as a person looks for it. jsonschema says the name in its message only.
    found = re.match(r"'(.+)' is a required property", misfit.message, re.DOTALL)
    yield FieldError(field=f"{path}.{found[1][:_LONGEST_PART]}" if found else path, message="is missing")


def _path(misfit: Misfit) -> str:
    path = "data"
    for part in misfit.absolute_path:
        path += f"[{part}]" if isinstance(part, int) else f".{str(part)[:_LONGEST_PART]}"
    return path


def _message(misfit: Misfit) -> str:
    """Said by the rule, not by the value: that may be a secret, or a megabyte."""
    rule = misfit.validator_value
    match misfit.validator:
        case "type":
            kinds = rule if isinstance(rule, list) else [rule]
            return f"has to be {' or '.join(map(str, kinds))}"
        case "additionalProperties" | "unevaluatedProperties":
            return "has a field that the type's model does not know"
        case "enum" | "const":
            allowed = rule if isinstance(rule, list) else [rule]
            return f"has to be one of {', '.join(map(repr, allowed))}"[:300]
        case "format":
            return f"is no {rule}"
        case "anyOf" | "oneOf":
            return "fits none of the forms that the type's model allows"
        case _:
            return f"does not fit the rule {misfit.validator}: {str(rule)[:_LONGEST_PART]}"


def _checker() -> FormatChecker:
    checker = FormatChecker(formats=())
    for name, adapter in _FORMATS.items():
        checker.checks(name, raises=ValidationError)(_judge_by(adapter))
    return checker


def _judge_by(adapter: TypeAdapter[Any]) -> Any:  # noqa: ANN401 - what jsonschema takes
    def judge(value: object) -> bool:
        if isinstance(value, str):
            adapter.validate_python(value)
        return True

    return judge
