"""What is kept of an exception, however hostile it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pgq_core.handlers import Failure, failure_of


class ShopError(Exception):
    """An error of the application's own."""


def _raise(error: BaseException) -> None:
    raise error


def caught(error: BaseException) -> Failure:
    try:
        _raise(error)
    except BaseException as raised:  # noqa: BLE001 - whatever was given
        return failure_of(raised)
    raise AssertionError("nothing was raised")


def test_message_class_traceback_and_frame_are_kept() -> None:
    failure = caught(ShopError("no such order: 42"))

    assert failure.error == "ShopError: no such order: 42"
    assert failure.error_class is not None
    assert failure.error_class.endswith("test_failure.ShopError")
    assert failure.traceback is not None
    assert "raise error" in failure.traceback
    assert failure.frame == "test_failure.py:_raise"
    assert failure.fingerprint("t") == caught(ShopError("no such order: 7")).fingerprint("t")


def test_the_frame_is_the_application_s_own_even_when_a_library_raised() -> None:
    try:
        json.loads("{")
    except ValueError as error:
        failure = failure_of(error)

    assert failure.frame is not None
    assert failure.frame.startswith("test_failure.py:test_the_frame")
    assert failure.error_class == "json.decoder.JSONDecodeError"


def test_a_plain_message_is_enough() -> None:
    assert failure_of("no reason\x00") == Failure("no reason␀")
    assert failure_of("").error == "failed without a message"


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Liar(Exception):
    @property
    def __cause__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no cause")


@pytest.mark.parametrize(
    "error",
    [
        Mute(),
        Liar(),
        ValueError("\x00\ud800 [red]\x1b[31m"),
        ValueError("x" * 1_000_000),
        KeyboardInterrupt(),
        ExceptionGroup("many", [ValueError("\x00"), Mute()]),
    ],
    ids=lambda error: type(error).__name__,
)
def test_any_exception_becomes_storable_text(error: BaseException) -> None:
    failure = caught(error)

    for text in (failure.error, failure.error_class, failure.traceback, failure.frame):
        assert text is not None
        assert "\x00" not in text
        text.encode("utf-8")
        assert len(text) < 70_000


def test_the_traceback_of_a_deep_recursion_is_bounded() -> None:
    def dig() -> None:
        dig()

    try:
        dig()
    except RecursionError as error:
        failure = failure_of(error)

    assert failure.traceback is not None
    assert len(failure.traceback) < 40_000
    assert failure.frame == "test_failure.py:dig"
