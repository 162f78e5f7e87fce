"""The one boundary where foreign text (errors, logs, results, names) becomes storable in PostgreSQL."""

from __future__ import annotations

_NUL_SIGN = "\N{SYMBOL FOR NULL}"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

MAX_ERROR = 64 * 1024
"""Longest error or traceback that is stored, in characters."""


def storable(text: str, *, limit: int = MAX_ERROR) -> str:
    """Text that `text` and `jsonb` columns accept: NUL and lone surrogates become visible signs, the overlong is cut.

    >>> storable("a\\x00b"), storable("\\ud800")
    ('a␀b', '�')
    """
    if len(text) > limit:
        note = f" … [{len(text) - limit} characters cut]"
        text = text[:limit] + note
    if "\x00" in text:
        text = text.replace("\x00", _NUL_SIGN)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = "".join(_REPLACEMENT if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def describe(error: BaseException, *, limit: int = MAX_ERROR) -> str:
    """The message of an error, whatever its `__str__` does.

    >>> describe(KeyError("tax_id"))
    "KeyError: 'tax_id'"
    """
    name = type(error).__name__
    try:
        message = str(error)
    except BaseException as broken:  # noqa: BLE001  # a handler's exception class may be broken itself
        message = f"<its message cannot be shown: {type(broken).__name__}>"
    return storable(f"{name}: {message}" if message else name, limit=limit)
