"""Every app parses the same style sheets when it starts, a fifth of what such a test costs: once is enough."""

from __future__ import annotations

from typing import Any

import pytest
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet


def share_parsed_rules(patch: pytest.MonkeyPatch) -> None:
    """Rules are not changed once they are parsed; what they depend on is the text, its place and the variables."""
    parse = Stylesheet._parse_rules
    parsed: dict[Any, list[RuleSet]] = {}

    def parse_once(self: Stylesheet, *args: Any, **given: Any) -> list[RuleSet]:
        key = (args, tuple(sorted(given.items())), tuple(sorted(self._variables.items())))
        if key not in parsed:
            parsed[key] = parse(self, *args, **given)
        return parsed[key]

    patch.setattr(Stylesheet, "_parse_rules", parse_once)
