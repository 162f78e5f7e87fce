"""Secrets in payloads: values under telling keys are not shown. What is stored stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from pgq_core.domain.job import JSON

DEFAULT_MASK_KEYS: Final = (
    "password",
    "passwd",
    "pwd",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "cookie",
    "credential",
    "api_key",
    "access_key",
    "private_key",
)
MASKED: Final = "•••"

_WORDS = re.compile(r"[^\W\d_a-z]+(?![a-z])|[^\W\d_a-z]?[^\W\d_A-Z]+|\d+")
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]:,]|[^\s"{}\[\]:,]+|\s+', re.DOTALL)
_LONGEST_KEY = 200
# A name, alone or after one more word ("API key"), and what stands between it and its value.
_NAMED = re.compile(
    r"""(?<![\w.-])(?:(?P<before>[\w.-]{1,60})\ )?(?P<key>[\w.-]{1,200})(?P<quote>\\*["'])?\s?(?P<sign>[:=])\s?"""
)
_HEADERS = re.compile(r"(authorization|cookies?)$", re.IGNORECASE)
_VALUE = re.compile(
    r"""(?P<open>\\+"|\\+').*?(?:(?P=open)|$) | "(?:[^"\\]|\\.)*(?:"|$) | '(?:[^'\\]|\\.)*(?:'|$)
      | (?:(?:bearer|basic|token|digest|negotiate)\ )?[^\s,;&)\]}"'\[{(][^\s,;&)\]}\[{(]*""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_BRACKET = re.compile(r"[\[\](){}]")
_OPENING = frozenset("[({")
_REST_OF_LINE = re.compile(r"[^\r\n]+")
_ADDRESS_PASSWORD = re.compile(r"(://[^\s:/@]{0,200}:)[^\s@/]{1,500}@")


class Mask:
    """Hides values by their key. A key is telling when one of its words is, or its end: `stripe_secret`, `authToken`,
    `db-passwords`, `accesstoken`; not `secretary`.

    >>> Mask().value({"user": "ann", "auth": {"apiKey": "k-1", "tries": 2}})
    {'user': 'ann', 'auth': {'apiKey': '•••', 'tries': 2}}
    """

    def __init__(self, keys: Iterable[str] = DEFAULT_MASK_KEYS) -> None:
        self._patterns = tuple(pattern for key in keys if (pattern := "".join(_words(key))))
        self.hides = lru_cache(maxsize=4096)(self._hides)

    def value(self, value: JSON) -> JSON:
        """A copy with the telling values replaced, however deep."""
        if isinstance(value, dict):
            return {key: MASKED if self.hides(key[:_LONGEST_KEY]) else self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def text(self, text: str) -> str:
        """The same for JSON text, to the digit, also for text that was cut off somewhere.

        >>> Mask().text('{"token": {"a": [1, 2]}, "n": 1.50, "pass')
        '{"token": "•••", "n": 1.50, "pass'
        """
        if not self._patterns:
            return text
        shown: list[str] = []
        tokens = iter(_TOKENS.findall(text))
        last = ""
        for part in tokens:
            shown.append(part)
            if part == ":" and last.startswith('"') and self.hides(_key(last)):
                shown.append(_skipped_value(tokens))
            if not part.isspace():
                last = part
        return "".join(shown)

    def prose(self, text: str) -> str:
        """The same for words that a program wrote: errors, tracebacks, log lines; passwords in addresses, too.

        >>> print(Mask().prose("login(user='ann', password='x y') failed: Authorization: Bearer abc"))
        login(user='ann', password='•••') failed: Authorization: •••
        >>> Mask().prose("postgresql://app:s3cret@db/jobs: {'api_key': ['a', 'b'], 'n': 1}, unexpected token: ]")
        "postgresql://app:•••@db/jobs: {'api_key': •••, 'n': 1}, unexpected token: ]"
        """
        shown: list[str] = []
        at = 0
        for match in _NAMED.finditer(text) if self._patterns else ():
            if match.start() < at or not self._names_secret(match):
                continue
            end, shown_value = _hidden_value(text, match)
            if end > match.end():
                shown += (text[at : match.end()], shown_value)
                at = end
        shown.append(text[at:])
        return _ADDRESS_PASSWORD.sub(rf"\1{MASKED}@", "".join(shown))

    def _names_secret(self, match: re.Match[str]) -> bool:
        """ "API key" names one by both words; "password wrong: 3" does not name what follows."""
        before, key = match["before"], match["key"]
        return self.hides(key) or bool(before and not self.hides(before) and self.hides(f"{before} {key}"))

    def _hides(self, key: str) -> bool:
        words = _words(key)
        whole = "".join(words)
        return any(whole.endswith((pattern, f"{pattern}s")) or pattern in _runs(words) for pattern in self._patterns)


def _words(key: str) -> list[str]:
    """
    >>> _words("stripeAPIKey_v2")
    ['stripe', 'api', 'key', 'v', '2']
    """
    return [word.casefold() for word in _WORDS.findall(key)]


def _runs(words: list[str]) -> set[str]:
    """All sequences of words, with and without the plural of the last one."""
    runs = {"".join(words[start:end]) for start in range(len(words)) for end in range(start + 1, len(words) + 1)}
    return runs | {run.removesuffix("s") for run in runs}


def _key(token: str) -> str:
    try:
        return str(json.loads(token))[:_LONGEST_KEY]
    except ValueError:
        return token.strip('"')[:_LONGEST_KEY]


def _skipped_value(tokens: Iterable[str]) -> str:
    """Passes over one value; answers what is shown in its place, with the space before it."""
    space, depth = "", 0
    for part in tokens:
        if part.isspace():
            space = space or (part if not depth else "")
            continue
        depth += (part in "{[") - (part in "}]")
        if depth <= 0:
            break
    return f'{space}"{MASKED}"'


def _hidden_value(text: str, match: re.Match[str]) -> tuple[int, str]:
    """Where the value after a telling name ends, and what is shown in its place."""
    start = match.end()
    if text[start : start + 1] in _OPENING:
        return _closing(text, start), MASKED
    is_header = match["sign"] == ":" and match["quote"] is None and _HEADERS.search(match["key"])
    value = (_REST_OF_LINE if is_header else _VALUE).match(text, start)
    if value is None:
        return start, ""
    quote = value[0][0] if value[0][0] in "\"'" else ""
    end = value.end()
    if not quote and text[end : end + 1] in _OPENING:  # SecretStr('...')
        end = _closing(text, end)
    return end, f"{quote}{MASKED}{quote}"


def _closing(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; the end of a text that was cut off before."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += 1 if match[0] in _OPENING else -1
        if depth == 0:
            return match.end()
    return len(text)
