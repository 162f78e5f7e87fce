"""The one JSON encoder: what it accepts arrives equal, what cannot be kept is refused with its path.

| Python | JSON |
|---|---|
| str, int, float, bool, None, dict, list, tuple | themselves; a tuple becomes an array |
| Decimal | a string with all its digits, so that no reader rounds it |
| datetime, date, time | ISO 8601, with the offset when there is one |
| timedelta | ISO 8601 duration in seconds (`PT90.5S`) |
| UUID | its canonical string |
| Enum | its value |
| dataclass | an object of its fields |
| pydantic model | what its own `model_dump(mode="json", by_alias=True)` says |

Refused: everything else, text with NUL or lone surrogates, NaN and Infinity, keys that are no text, circular
structures, integers of more than 4,300 digits (Python itself would not read them back), nesting deeper than 200, JSON
longer than 1 MiB. `jsonb` keeps no key order and no sign of zero; integers and floats arrive as they were, `1` and
`1.0` included.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Final, TypeGuard
from uuid import UUID

import orjson

from pgq_core.domain.job import JSON
from pgq_core.domain.text import storable
from pgq_core.errors import InvalidPayload

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_DEPTH: Final = 200
"""Far below what PostgreSQL's stack and Python's parser can take."""
MAX_BYTES: Final = 1024 * 1024
MAX_DIGITS: Final = 4300

_FIRST_TOO_LONG = 10**MAX_DIGITS
_QUICK_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
# What orjson writes without a word where we have to look closer: NaN as null, NUL as \u0000, and 1e23, which jsonb
# would turn into digits that Python reads back as an integer. Text that only looks like it takes the exact way too.
_NEEDS_A_LOOK = re.compile(rb"null|\\u0000|[0-9]e[+0-9]")
_SHOWN_KEY = 60
_EXACT_FLOAT = 1e16  # from here on Python writes an exponent


def encode(value: object, *, max_bytes: int = MAX_BYTES) -> bytes:
    """JSON text of `value`, ready for jsonb. Raises InvalidPayload with the path of the first part that cannot be kept.

    >>> encode({"total": Decimal("1.10"), "ids": (1, 2**70)})
    b'{"total":"1.10","ids":[1,1180591620717411303424]}'
    """
    text = _quickly(value)
    if text is None:
        text = _exactly(value, root="data", forgiving=False)
    if len(text) > max_bytes:
        raise InvalidPayload(f"{len(text)} bytes of JSON are more than the limit of {max_bytes}")
    return text


def storable_result(value: object, *, max_bytes: int = MAX_BYTES) -> tuple[str | None, str | None]:
    """(JSON text, None) for what a handler returned, or (None, why it cannot be stored). Never raises.

    The job did its work, so nothing of its result may fail it: text that PostgreSQL cannot hold, NaN and Infinity
    become visible signs; what is no JSON at all becomes a note.

    >>> storable_result({"mean": float("nan")}), storable_result({1, 2})
    (('{"mean":"NaN"}', None), (None, 'result not storable: a set is no JSON value'))
    """
    if value is None:
        return None, None
    try:
        text = _quickly(value) or _exactly(value, root="result", forgiving=True)
    except InvalidPayload as refused:
        where = "" if refused.path == "result" else f" (at {refused.path})"
        return None, storable(f"result not storable: {refused.reason}{where}", limit=1000)
    except Exception as broken:  # noqa: BLE001 - properties and serialisers of foreign objects may raise anything
        return None, f"result not storable: reading it raised {type(broken).__name__}"
    if len(text) > max_bytes:
        return None, f"result not storable: {len(text)} bytes of JSON are more than the limit of {max_bytes}"
    return text.decode(), None


_QUICK_SIZE: Final = 64 * 1024
_LONG_NUMBER: Final = re.compile(r"[0-9]{18}|[0-9][eE]")
"""Where orjson may round: integers beyond 64 bits. They are read exactly, and so is what only looks like one."""


def decode(text: str | bytes) -> JSON:
    """The value of JSON text, integers exact. Raises InvalidPayload for what plain SQL may hold and Python cannot."""
    try:
        if isinstance(text, bytes):
            text = text.decode()
        if len(text) < _QUICK_SIZE and not _LONG_NUMBER.search(text):
            return orjson.loads(text)
    except ValueError:  # orjson is stricter about nesting and size; the exact way decides
        pass
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidPayload("it is nested too deep to be read") from None
    except ValueError as error:
        raise InvalidPayload(f"it cannot be read: {error}") from error


@dataclasses.dataclass(frozen=True, slots=True)
class Unreadable:
    """Stands for a JSON value that Python cannot read: nested too deep, or an integer of too many digits."""

    reason: str


def decode_any(text: str | bytes) -> JSON | Unreadable:
    """For connections: one value that plain SQL put there must not make a whole answer unreadable."""
    try:
        return decode(text)
    except InvalidPayload as error:
        return Unreadable(error.reason)


def _quickly(value: object) -> bytes | None:
    """orjson's answer when it is beyond doubt, else None."""
    try:
        text = orjson.dumps(value, default=_simpler, option=_QUICK_OPTIONS)
    except (TypeError, RecursionError):  # orjson names no path; the exact way finds it, or accepts (long integers)
        return None
    if _NEEDS_A_LOOK.search(text):
        return None
    # Short text cannot be nested that deep.
    if len(text) > MAX_DEPTH and text.count(b"[") + text.count(b"{") > MAX_DEPTH:
        return None
    return text


def _simpler(value: object) -> object:
    """One step from a richer type towards JSON. TypeError for what has no step."""
    match value:
        case Enum():
            return value.value
        case Decimal() if value.is_finite():
            return str(value)
        case datetime():
            return _instant(value)
        case date() | time():
            return value.isoformat()
        case timedelta():
            return _duration(value)
        case UUID():
            return str(value)
        case _ if _is_model(value):
            return value.model_dump(mode="json", by_alias=True)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(_refusal(value))


def _is_model(value: object) -> TypeGuard[BaseModel]:
    """Of pydantic, which is not imported for this: where nobody has, nothing can be one of its models."""
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(value, pydantic.BaseModel)


def _instant(value: datetime) -> str:
    """As pydantic's models write it: the same moment enqueued both ways is the same payload, as keys have to see it."""
    text = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _duration(value: timedelta) -> str:
    microseconds = value // timedelta(microseconds=1)
    sign = "-" if microseconds < 0 else ""
    seconds, rest = divmod(abs(microseconds), 1_000_000)
    return f"{sign}PT{seconds}.{rest:06d}S" if rest else f"{sign}PT{seconds}S"


def _refusal(value: object) -> str:
    match value:
        case bytes() | bytearray() | memoryview():
            return "bytes are no JSON value; send them as base64 text"
        case Decimal():
            return f"{value} is no JSON number"
        case Mapping():
            return f"{_with_article(type(value).__name__)} is no JSON value; pass dict(...)"
        case _:
            return f"{_with_article(type(value).__name__)} is no JSON value"


def _with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _exactly(value: object, *, root: str, forgiving: bool) -> bytes:
    writer = _ExactWriter(root, forgiving=forgiving)
    writer.write(value)
    return "".join(writer.parts).encode("utf-8")


class _ExactWriter:
    """Walks a value, knowing where it is. `forgiving`: unstorable text and numbers become visible signs."""

    def __init__(self, root: str, *, forgiving: bool) -> None:
        self.parts: list[str] = []
        self._forgiving = forgiving
        self._path = [root]
        self._open: set[int] = set()

    def write(self, value: object) -> None:
        match value:
            case None | True | False:
                self.parts.append({None: "null", True: "true", False: "false"}[value])
            case Enum():  # before str and int: a StrEnum is both, and its value is what counts
                self._inside(value, lambda: self.write(value.value))
            case str():
                self.parts.append(self._text(value))
            case int():
                self.parts.append(self._integer(value))
            case float():
                self.parts.append(self._float(value))
            case dict():
                self._inside(value, lambda: self._object(value))
            case list() | tuple():
                self._inside(value, lambda: self._array(value))
            case _:
                simpler = self._simpler(value)
                self._inside(value, lambda: self.write(simpler))

    def _simpler(self, value: object) -> object:
        if self._forgiving and isinstance(value, Decimal):
            return str(value)
        try:
            return _simpler(value)
        except (TypeError, ValueError) as error:  # ValueError: a pydantic model that contains itself
            raise self._refused(str(error)) from None

    def _inside(self, value: object, write_content: Callable[[], None]) -> None:
        if id(value) in self._open:
            raise self._refused("it contains itself")
        if len(self._open) >= MAX_DEPTH:
            raise self._refused(f"it is nested deeper than {MAX_DEPTH}")
        self._open.add(id(value))
        write_content()
        self._open.remove(id(value))

    def _object(self, value: dict[object, object]) -> None:
        seen: set[str] = set()
        separator = "{"
        for key, item in value.items():
            name = self._key(key)
            if name in seen:
                raise self._refused(f"two keys are both written {name}")
            seen.add(name)
            self.parts += (separator, name, ":")
            separator = ","
            self._path.append(_key_step(key))
            self.write(item)
            self._path.pop()
        self.parts.append("}" if seen else "{}")

    def _array(self, value: list[object] | tuple[object, ...]) -> None:
        separator = "["
        for position, item in enumerate(value):
            self.parts.append(separator)
            separator = ","
            self._path.append(f"[{position}]")
            self.write(item)
            self._path.pop()
        self.parts.append("]" if value else "[]")

    def _key(self, key: object) -> str:
        text = key.value if isinstance(key, Enum) else key
        if not isinstance(text, str):
            raise self._refused(f"a key is of type {type(key).__name__}, JSON keys are text")
        return self._text(text, what="a key")

    def _text(self, value: str, what: str = "text") -> str:
        if self._forgiving:
            value = storable(value, limit=len(value))
        elif "\x00" in value:
            raise self._refused(f"{what} contains NUL (\\u0000), which PostgreSQL cannot store")
        elif not _is_unicode(value):
            raise self._refused(f"{what} contains a lone surrogate, which is no Unicode text")
        return encode_basestring(value)

    def _integer(self, value: int) -> str:
        if abs(value) >= _FIRST_TOO_LONG:
            raise self._refused(f"an integer of more than {MAX_DIGITS} digits cannot be read back")
        return int.__repr__(value)

    def _float(self, value: float) -> str:
        if not math.isfinite(value):
            sign = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
            if self._forgiving:
                return f'"{sign}"'
            raise self._refused(f"{sign} is no JSON number")
        if abs(value) >= _EXACT_FLOAT:
            # jsonb would write 1e23 as digits, which Python reads as the integer 10**23, and that is another number.
            return f"{Decimal(float.__repr__(value)):f}.0"
        return float.__repr__(value)

    def _refused(self, reason: str) -> InvalidPayload:
        return InvalidPayload(reason, path="".join(self._path))


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _key_step(key: object) -> str:
    """How a key is shown in a path: never longer than a line, never with control characters."""
    text = str.__str__(key.value if isinstance(key, Enum) else key)
    if text.isidentifier() and len(text) <= _SHOWN_KEY:
        return f".{text}"
    return f"[{json.dumps(text[:_SHOWN_KEY])}]"
