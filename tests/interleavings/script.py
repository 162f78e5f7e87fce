"""A script of steps that several sessions take in turn:

    a: begin
    a: claim -> 1
    b: cancel 1 (blocks)
    a: commit
    b: unblocks -> requested
    then: jobs -> 1 running

A step runs to its end and answers what stands behind the arrow, or waits for another session's lock. `then` looks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.interleavings.verbs import VERBS
from tests.support.actors import Actor, Cast, cast_on
from tests.support.queue_database import QueueDatabase

_STEP = re.compile(r"(?P<actor>\w+): (?P<verb>[\w-]+)(?P<args>[^(>]*?)(?P<blocks> \(blocks\))?( -> (?P<answer>.*))?$")


@dataclass(frozen=True, slots=True)
class Step:
    line: str
    actor: str
    verb: str
    args: tuple[str, ...]
    blocks: bool
    answer: str | None


def parse(script: str) -> list[Step]:
    """
    >>> parse("b: cancel 1 (blocks)")[0].blocks, parse("b: unblocks -> not found")[0].answer
    (True, 'not found')
    """
    return [_step(line.strip()) for line in script.splitlines() if line.strip()]


def _step(line: str) -> Step:
    found = _STEP.fullmatch(line)
    assert found, f"not a step: {line}"
    return Step(
        line, found["actor"], found["verb"], tuple(found["args"].split()), bool(found["blocks"]), found["answer"]
    )


def play(database: QueueDatabase, script: str) -> None:
    """Takes the steps; whoever still waits at the end is a fault."""
    with cast_on(database.dsn) as cast:
        waiting: dict[str, Step] = {}
        for step in parse(script):
            _take(step, cast, waiting)
        assert not waiting, f"still waiting: {[step.line for step in waiting.values()]}"


def _take(step: Step, cast: Cast, waiting: dict[str, Step]) -> None:
    actor = cast[step.actor]
    if step.verb == "unblocks":
        del waiting[step.actor]
        _compare(step, actor.end())
        return
    act = _act(step)
    if step.blocks:
        actor.start(act)
        cast.wait_until_blocked(actor)
        waiting[step.actor] = step
    else:
        _compare(step, actor.act(act))


def _act(step: Step) -> Callable[[Actor], str]:
    verb = VERBS[step.verb]
    return lambda actor: verb(actor, *step.args)


def _compare(step: Step, answer: object) -> None:
    if step.answer is not None:
        assert answer == step.answer, f"{step.line}: answered {answer!r}"
