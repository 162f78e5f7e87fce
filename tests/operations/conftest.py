from __future__ import annotations

from tests.support.operator import conn, inspector, operations, queries

__all__ = ["conn", "inspector", "operations", "queries"]
