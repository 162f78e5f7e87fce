"""Groups failures that are the same failure: numbers, ids, quoted text, hosts and paths do not make a difference."""

from __future__ import annotations

import hashlib
import re

_MAX_TEXT = 2000

_NOISE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{0,20}://\S+"), "<url>"),
    (re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}"), "<email>"),
    (re.compile(r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\""), "<str>"),
    (re.compile(r"(?<![\w.])/(?:[\w.@-]+/){1,32}[\w.@-]*"), "<path>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<host>"),
    (
        re.compile(
            r"\b(?:[a-z0-9-]{1,63}\.){1,8}(?:com|org|net|io|local|internal|example|dev|test)(?::\d+)?\b", re.IGNORECASE
        ),
        "<host>",
    ),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<hex>"),
    (re.compile(r"\d+(?:\.\d+)?"), "<n>"),
)


def normalise_error(text: str) -> str:
    """The first line of an error with everything replaced that differs from job to job.

    >>> normalise_error("user 42 not found in '/srv/app'")
    'user <n> not found in <str>'
    """
    first_line = text[:_MAX_TEXT].strip().partition("\n")[0]
    for pattern, sign in _NOISE:
        first_line = pattern.sub(sign, first_line)
    return first_line


def fingerprint(job_type: str, error_class: str | None, error: str, frame: str | None) -> str:
    """Twelve hex digits, equal for failures of one kind. `frame`: the application's innermost `file:function`."""
    parts = "\x1f".join((job_type, error_class or "", normalise_error(error), frame or ""))
    return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()[:12]
