"""What a handler function asks for: its data first, then what is injected by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any

from pgq_core.errors import InvalidHandler

INJECTED = ("job", "conn", "context")
"""`job`: the Job; `conn`: the job's own transaction; `context`: progress, cancellation, log, resources."""


def injected_names(function: Callable[..., Any], *, transactional: bool) -> tuple[str, ...]:
    """The names after the first parameter. Raises InvalidHandler for a signature that a worker could not call."""
    where = place_of(function)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidHandler(where, "it is a generator; a handler returns its result")
    first, *others = _parameters(function, where)
    if first.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
        raise InvalidHandler(where, "its first parameter takes the job's data and must be a plain positional one")
    unknown = [f"`{parameter.name}`" for parameter in others if not _can_be_injected(parameter)]
    if unknown:
        known = ", ".join(f"`{name}`" for name in INJECTED)
        raise InvalidHandler(
            where, f"nobody fills its parameter {', '.join(unknown)}; after the data there may be {known}"
        )
    names = tuple(parameter.name for parameter in others)
    if ("conn" in names) != transactional:
        raise InvalidHandler(
            where, "`conn` is the job's transaction: ask for it and say transactional=True, or neither"
        )
    return names


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Also true for an object whose `__call__` is a coroutine function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def place_of(function: Callable[..., Any]) -> str:
    """`module.function (file:line)`, for messages that a reader follows to the source."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = f"{getattr(plain, '__module__', None)}.{getattr(plain, '__qualname__', type(plain).__name__)}"
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


def _parameters(function: Callable[..., Any], where: str) -> list[Parameter]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise InvalidHandler(where, f"its parameters cannot be read ({error})") from error
    if not parameters:
        raise InvalidHandler(where, "it takes no parameter; the first one receives the job's data")
    return parameters


def _can_be_injected(parameter: Parameter) -> bool:
    by_name = parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
    return by_name and parameter.name in INJECTED
