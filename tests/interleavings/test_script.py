"""The harness itself: what it must not let pass."""

from __future__ import annotations

import doctest

import pytest

from tests.interleavings import script
from tests.interleavings.script import play
from tests.support.queue_database import QueueDatabase


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(script).failed == 0


@pytest.mark.parametrize(
    "wrong",
    [
        "p: enqueue -> 7",
        "p: enqueue (blocks)",
        "p: enqueue\na: begin\na: claim\no: cancel 1 (blocks)",
        "a: no step at all ->",
    ],
)
def test_a_script_that_goes_another_way_fails(database: QueueDatabase, wrong: str) -> None:
    with pytest.raises(AssertionError):
        play(database, wrong)
