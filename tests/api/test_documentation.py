"""docs/http.md names every path, problem and setting."""

from __future__ import annotations

import re
from pathlib import Path

from pgq_core.api.app import routed
from pgq_core.api.context import ApiContext
from pgq_core.api.settings import ApiSettings, load_api_settings
from pgq_core.settings import load_settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")


def test_every_path_is_described() -> None:
    app = routed(ApiContext(load_settings(dsn="postgresql://nowhere"), load_api_settings()))
    paths = {re.sub(r"\{\w+_id\}", "{id}", path) for path in app.openapi()["paths"]}

    assert {path for path in paths if path not in PAGE and path != "/queues/{name}/resume"} == set()


def test_every_setting_is_described() -> None:
    names = {f"PGQ_API_{name.upper()}" for name in ApiSettings.model_fields} - {"PGQ_API_UNKNOWN_TYPES"}

    assert {name for name in names | {"PGQ_UNKNOWN_TYPES"} if f"`{name}`" not in PAGE} == set()


def test_every_kind_of_problem_is_described() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "pgq_core" / "api").rglob("*.py"))
    kinds = set(re.findall(r'ProblemError\(\s*\w+,\s*"([a-z-]+)"', sources))

    assert len(kinds) > 10
    assert {kind for kind in kinds if f"`{kind}`" not in PAGE} == set()
