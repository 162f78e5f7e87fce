"""The operator's filter line: `queue:emails reason:timeout reset by peer` becomes the filters of a list."""

from __future__ import annotations

from collections.abc import Mapping

from pgq_core.domain.filters import NO_FINGERPRINT, DeadLetterFilters, JobFilters, Resolution, RunFilters
from pgq_core.domain.job import DeathReason, JobStatus, Outcome

RUN_FIELDS = ("queue", "type", "state", "worker", "job")
JOB_FIELDS = ("queue", "type", "state")
DEAD_FIELDS = ("queue", "type", "reason", "fp", "is")
_ALIASES = {
    "q": "queue",
    "task": "type",
    "status": "state",
    "outcome": "state",
    "id": "job",
    "fingerprint": "fp",
    "kind": "fp",
}
_LARGEST_ID = 2**63 - 1


class FilterError(ValueError):
    """A filter line that cannot mean anything here; the message says which part, and what would be right."""


def run_filters(line: str) -> RunFilters:
    """What the runs are narrowed to; several states are alternatives.

    >>> run_filters("queue:emails state:dead,retried time out").outcomes
    ('dead', 'retried')
    """
    found, text = _terms(line, RUN_FIELDS)
    outcomes = tuple(part for part in found.get("state", "").split(",") if part)
    for outcome in outcomes:
        _known("state", outcome, [one.value for one in Outcome])
    return RunFilters(
        queue=found.get("queue"),
        job_type=found.get("type"),
        outcomes=outcomes,
        worker_id=found.get("worker"),
        job_id=_id(found["job"]) if "job" in found else None,
        text=text or None,
    )


def job_filters(line: str) -> JobFilters:
    """What the live jobs are narrowed to.

    >>> job_filters("state:pending queue:emails")
    JobFilters(status='pending', queue='emails', job_type=None)
    """
    found, text = _terms(line, JOB_FIELDS)
    if text:
        raise FilterError(f"live jobs are not searched for words ({text!r}): use queue: type: state:")
    if status := found.get("state"):
        _known("state", status, [one.value for one in JobStatus])
    return JobFilters(status=status, queue=found.get("queue"), job_type=found.get("type"))


def dead_filters(line: str) -> DeadLetterFilters:
    """What the dead letters are narrowed to; `is:replayed` and `is:discarded` show resolved ones.

    >>> dead_filters('type:bill "no route"').text, dead_filters("is:any").resolution.value
    ('no route', 'any')
    """
    found, text = _terms(line, DEAD_FIELDS)
    if reason := found.get("reason"):
        _known("reason", reason, [one.value for one in DeathReason])
    resolution = found.get("is", Resolution.UNRESOLVED.value)
    _known("is", resolution, [one.value for one in Resolution])
    fingerprint = found.get("fp")
    return DeadLetterFilters(
        queue=found.get("queue"),
        job_type=found.get("type"),
        reason=reason,
        fingerprint=NO_FINGERPRINT if fingerprint == "none" else fingerprint,
        text=text or None,
        resolution=Resolution(resolution),
    )


def filter_line(**terms: str) -> str:
    """The line that says this; for screens that send the operator to another one.

    >>> filter_line(queue="emails"), filter_line(queue="my queue", state="dead")
    ('queue:emails', 'queue:"my queue" state:dead')
    """
    return " ".join(f"{name}:{_quoted(value)}" for name, value in terms.items())


def _terms(line: str, allowed: tuple[str, ...]) -> tuple[Mapping[str, str], str]:
    """Values by field, and the words that belong to none. An unknown field is a word: `http://x` can be looked for."""
    known = {*RUN_FIELDS, *JOB_FIELDS, *DEAD_FIELDS}
    found: dict[str, str] = {}
    words: list[str] = []
    for word in _split(line):
        name, colon, value = word.partition(":")
        field = _ALIASES.get(name.lower(), name.lower())
        if not colon or field not in known:
            words.append(word.replace('"', "") if word.startswith('"') else word)
        elif field not in allowed:
            raise FilterError(f"{name}: does not narrow this list; it knows {_spoken(allowed)}")
        elif value:
            found[field] = value.replace('"', "")
    return found, " ".join(words)


def _split(line: str) -> list[str]:
    """Words at blanks, except inside double quotes; a quote that is never closed ends with the line.

    >>> _split('a "b c" d:"e f"g "h')
    ['a', '"b c"', 'd:"e f"g', '"h']
    """
    words, word, is_quoted = [], "", False
    for character in line:
        if character == '"':
            is_quoted = not is_quoted
        if character.isspace() and not is_quoted:
            words.append(word)
            word = ""
        else:
            word += character
    return [word for word in (*words, word) if word]


def _known(field: str, value: str, values: list[str]) -> None:
    if value not in values:
        raise FilterError(f"{field}:{value} is none of {', '.join(values)}")


def _id(value: str) -> int:
    digits = value.replace("_", "").replace(",", "")
    if not (digits.isascii() and digits.isdigit()) or int(digits[:20]) > _LARGEST_ID:
        raise FilterError(f"job:{value} is no number of a job")
    return int(digits)


def _spoken(fields: tuple[str, ...]) -> str:
    return " ".join(f"{field}:" for field in fields)


def _quoted(value: str) -> str:
    return f'"{value}"' if any(character.isspace() for character in value) else value
