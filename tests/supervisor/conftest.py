from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.support import Host


@pytest.fixture
def host(dsn: str, tmp_path: Path) -> Iterator[Host]:
    supervised = Host(dsn, tmp_path / "state")
    yield supervised
    supervised.close()
