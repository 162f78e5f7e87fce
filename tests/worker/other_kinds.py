"""A second application, for a worker that serves two."""

from __future__ import annotations

from typing import Any

from pgq_core.handlers import handler


@handler("from_elsewhere")
async def from_elsewhere(data: Any) -> None:
    pass
