"""What all apps of these tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.stylesheets import share_parsed_rules


@pytest.fixture(scope="session", autouse=True)
def parsed_rules() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        share_parsed_rules(patch)
        yield
