"""The plays are no test modules, but what they assert is to be readable when it fails."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    *(f"tests.guards.{name}" for name in ("claims", "fleet", "functions", "operators", "upkeep"))
)
