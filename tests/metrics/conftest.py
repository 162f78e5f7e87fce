from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.queue_database import QueueDatabase


@pytest.fixture
def database(dsn: str) -> Iterator[QueueDatabase]:
    opened = QueueDatabase(dsn)
    yield opened
    opened.close()
