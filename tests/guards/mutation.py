"""Takes one condition at a time out of a statement.

Every operand of WHERE, AND, OR, WHEN and IF counts, subqueries included; so do LIMIT, row locks and their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_TOKEN = re.compile(r"'(?:[^']|'')*'|%\(\w+\)s|[A-Za-z_][\w.]*|[()]|[^\sA-Za-z_()']+")
_ENDS = {
    "AND", "OR", "ORDER", "GROUP", "LIMIT", "FOR", "RETURNING", "HAVING", "UNION", "THEN", "WHEN", "ELSE", "END",
    "WINDOW", "OFFSET", "WHERE", "DO", "AS", "LOOP",
}  # fmt: skip
_KINDS = {"WHERE": "true", "AND": "true", "OR": "false", "WHEN": "false", "IF": "false", "ELSIF": "false"}
_NO_CONDITION = re.compile(r"(WHEN|OR) (unique_violation|no_data_found|check_violation|SQLSTATE|REPLACE)\b")
"""Names of errors behind EXCEPTION, and CREATE OR REPLACE."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A statement that has lost the guard of this name. `about_locks`: it shows only where two sessions meet."""

    name: str
    text: str
    about_locks: bool = False


def without_comments(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text)


def mutants(text: str) -> list[Mutant]:
    """
    >>> [m.name for m in mutants("DELETE FROM t WHERE a = 1 AND (b OR c BETWEEN 1 AND 2)")]
    ['WHERE a = 1', 'AND (b OR c BETWEEN 1 AND 2)', 'OR c BETWEEN 1 AND 2']
    >>> mutants("SELECT 1 WHERE a AND b FOR UPDATE SKIP LOCKED")[-1].text
    'SELECT 1 WHERE a AND b FOR UPDATE '
    """
    plain = without_comments(text)
    found = [*_conditions(plain), *_limits(plain), *_locks(plain)]
    names = [re.sub(r"\s+", " ", mutant.name).strip() for mutant in found]
    return [replace(mutant, name=_numbered(names, index)) for index, mutant in enumerate(found)]


def _numbered(names: list[str], index: int) -> str:
    """A guard that stands there several times has a number from the second on."""
    before = names[:index].count(names[index])
    return f"{names[index]} #{before + 1}" if before else names[index]


def _conditions(text: str) -> Iterator[Mutant]:
    tokens = list(_TOKEN.finditer(text))
    open_betweens: dict[int, int] = {}
    depth = 0
    for index, token in enumerate(tokens):
        word = token[0]
        depth += (word in {"(", "CASE"}) - (word in {")", "END"})
        if word == "BETWEEN":
            open_betweens[depth] = open_betweens.get(depth, 0) + 1
        elif word == "AND" and open_betweens.get(depth):
            open_betweens[depth] -= 1
        elif word == "IF" and index and tokens[index - 1][0] in {"END", "FUNCTION"}:
            continue
        elif word in _KINDS:
            end = _end_of_operand(text, tokens, index + 1)
            guard = text[token.start() : end]
            if not _NO_CONDITION.match(guard):
                yield Mutant(guard, f"{text[: token.end()]} {_KINDS[word]} {text[end:]}")


def _end_of_operand(text: str, tokens: list[re.Match[str]], index: int) -> int:
    depth = betweens = 0
    for token in tokens[index:]:
        word = token[0]
        if word in {")", "END"} and depth == 0:
            return token.start()
        if depth == 0 and word == "AND" and betweens:
            betweens -= 1
            continue
        if depth == 0 and (word in _ENDS or word in {";", "$"}):
            return token.start()
        betweens += depth == 0 and word == "BETWEEN"
        depth += (word in {"(", "CASE"}) - (word in {")", "END"})
    return len(text)


def _limits(text: str) -> Iterator[Mutant]:
    for found in re.finditer(r"LIMIT (%\(\w+\)s|\d+)", text):
        yield Mutant(found[0], text[: found.start()] + "LIMIT ALL" + text[found.end() :])


def _locks(text: str) -> Iterator[Mutant]:
    for found in re.finditer(r"(ORDER BY [^\n]+\s+)?(?:LIMIT [^\n]+\s+)?(FOR UPDATE(?: OF \w+)?)( SKIP LOCKED)?", text):
        if found[3]:
            yield Mutant("SKIP LOCKED", text[: found.start(3)] + " " + text[found.end(3) :], about_locks=True)
            continue
        yield Mutant(found[2], text[: found.start(2)] + text[found.end(2) :], about_locks=True)
        if found[1]:
            yield Mutant(found[1], text[: found.start(1)] + text[found.end(1) :], about_locks=True)
    for found in re.finditer(r"( ORDER BY [^\n()]+)\) \w+\s+CROSS JOIN LATERAL \([^()]+ FOR UPDATE\)", text):
        yield Mutant(found[1], text[: found.start(1)] + text[found.end(1) :], about_locks=True)
