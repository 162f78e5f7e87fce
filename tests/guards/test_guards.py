"""Each guard of each guarded statement alone: taken out of a scratch copy, some play must fail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from pgq_core.sql import query_names, query_text
from tests.conftest import SCHEMA
from tests.guards import careful, claims, fleet, functions, operators, upkeep
from tests.guards.mutation import Mutant, mutants, without_comments
from tests.guards.play import Play, Scenario
from tests.guards.registry import MEETINGS, SCENARIOS, SURVIVORS
from tests.support.actors import cast_on
from tests.support.databases import new_database
from tests.support.queue_database import QueueDatabase

_PLAYS = (careful, claims, fleet, functions, operators, upkeep)
_WRITES = re.compile(r"\b(UPDATE|DELETE|INSERT)\b")
UNGUARDED = {"read_health"}
"""Reads that only speak of writing."""
GUARDED_READS = {"list_claims"}
"""Their answer is written on at once, so their conditions are guards too."""


def guarded_statements() -> list[str]:
    return [
        name
        for name in query_names()
        if name in GUARDED_READS or (name not in UNGUARDED and _WRITES.search(without_comments(query_text(name))))
    ]


@pytest.fixture(scope="module")
def database(server_dsn: str, template_database: str) -> Iterator[QueueDatabase]:
    with new_database(server_dsn, template=template_database, search_path=SCHEMA) as address:
        database = QueueDatabase(address)
        yield database
        database.close()


@dataclass(frozen=True, slots=True)
class Stage:
    """Where scenarios are played; whatever they do is gone afterwards."""

    database: QueueDatabase

    def complaint(
        self, scenario: Scenario, mutilated: dict[str, str] | None = None, *, meets: bool = False
    ) -> str | None:
        """What went wrong in the play; None when all went right. A mutant that is no SQL is a fault of the test."""
        try:
            (self._meeting if meets else self._solo)(scenario, mutilated or {})
        except (psycopg.errors.SyntaxErrorOrAccessRuleViolation, psycopg.ProgrammingError) as error:
            if isinstance(error, psycopg.errors.SyntaxError | psycopg.errors.UndefinedObject) or error.sqlstate is None:
                raise
            return f"{type(error).__name__}: {error}"
        except (AssertionError, psycopg.Error, TimeoutError) as error:
            return f"{type(error).__name__}: {error}"
        return None

    def _solo(self, scenario: Scenario, mutilated: dict[str, str]) -> None:
        conn = self.database.connection()
        with conn.transaction(force_rollback=True):
            for definition in (text for name, text in mutilated.items() if name.startswith("function ")):
                conn.execute(definition)  # type: ignore[call-overload]  # the server's own text, mutilated
            scenario(Play(self.database, mutilated))

    def _meeting(self, scenario: Scenario, mutilated: dict[str, str]) -> None:
        try:
            with cast_on(self.database.dsn) as cast:
                scenario(Play(self.database, mutilated, cast))
        finally:
            self.database.empty()


@pytest.fixture
def stage(database: QueueDatabase) -> Stage:
    return Stage(database)


def test_no_guarded_statement_is_without_a_play() -> None:
    missing = [name for name in guarded_statements() if mutants(query_text(name)) and not SCENARIOS[name]]

    assert missing == [], "write a play for each, with one row that misses each condition alone"


def test_no_excuse_outlives_its_guard() -> None:
    for statement, guard in SURVIVORS:
        if statement in query_names():
            assert guard in {mutant.name for mutant in mutants(query_text(statement))}, f"{statement} has no {guard!r}"


@pytest.mark.parametrize("statement", guarded_statements())
def test_every_guard_is_missed_when_it_is_gone(statement: str, stage: Stage) -> None:
    for scenario in SCENARIOS[statement]:
        assert stage.complaint(scenario) is None, scenario.__name__

    survivors = [mutant.name for mutant in mutants(query_text(statement)) if _survives(statement, mutant, stage)]

    assert not survivors, f"{statement}: no play fails without these; add one, or take the guard away: {survivors}"


def _survives(statement: str, mutant: Mutant, stage: Stage) -> bool:
    if mutant.about_locks or (statement, mutant.name) in SURVIVORS:
        return False
    scratch = {statement: mutant.text}
    return all(stage.complaint(play, scratch) is None for play in SCENARIOS[statement]) and all(
        stage.complaint(play, scratch, meets=True) is None for play in MEETINGS[statement]
    )


LOCKING = [
    (name, mutant)
    for name in guarded_statements()
    for mutant in mutants(query_text(name))
    if mutant.about_locks and (name, mutant.name) not in SURVIVORS
]


def test_plays_of_several_sessions_go_right(stage: Stage) -> None:
    for play in {play for plays in MEETINGS.values() for play in plays}:
        assert stage.complaint(play, meets=True) is None, play.__name__


@pytest.mark.slow
@pytest.mark.parametrize(("statement", "mutant"), LOCKING, ids=[f"{name}: {mutant.name}" for name, mutant in LOCKING])
def test_every_lock_is_missed_when_it_is_gone(statement: str, mutant: Mutant, stage: Stage) -> None:
    plays = MEETINGS[statement]
    assert any(stage.complaint(play, {statement: mutant.text}, meets=True) for play in plays), (
        f"{statement} without {mutant.name!r}: no play of two sessions fails"
    )


@pytest.fixture(scope="module")
def definitions(database: QueueDatabase) -> dict[str, str]:
    """Of the functions that write, by name."""
    rows = database.all(
        "SELECT p.proname AS name, pg_get_functiondef(p.oid) AS text FROM pg_proc p "
        "WHERE p.pronamespace = %s::regnamespace AND p.prokind = 'f'",
        SCHEMA,
    )
    return {row["name"]: row["text"] for row in rows if _WRITES.search(without_comments(row["text"]))}


def test_no_function_that_writes_is_without_a_play(definitions: dict[str, str]) -> None:
    played = {name.removeprefix("function ") for name in SCENARIOS if name.startswith("function ")}

    assert set(definitions) - played == set(), "write a play for each"
    assert played <= set(definitions)


@pytest.mark.parametrize("function", sorted(name for name in SCENARIOS if name.startswith("function ")))
def test_every_guard_of_a_function_is_missed_when_it_is_gone(
    function: str, definitions: dict[str, str], stage: Stage
) -> None:
    """Its row locks are played in tests/interleavings."""
    for scenario in SCENARIOS[function]:
        complaint = stage.complaint(scenario)
        assert complaint is None, f"{scenario.__name__}: {complaint}"

    found = [mutant for mutant in mutants(definitions[function.removeprefix("function ")]) if not mutant.about_locks]
    survivors = [mutant.name for mutant in found if _function_survives(function, mutant, stage)]

    assert not survivors, f"{function}: no play fails without these: {survivors}"


def _function_survives(function: str, mutant: Mutant, stage: Stage) -> bool:
    if (function, mutant.name) in SURVIVORS:
        return False
    return all(stage.complaint(play, {function: mutant.text}) is None for play in SCENARIOS[function])
