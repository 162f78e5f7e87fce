"""What `from pgq_core import ...` promises, and what `import pgq_core` costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pgq_core


@pytest.mark.parametrize("name", pgq_core.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(pgq_core, name) is not None


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(pgq_core.__file__).read_text(encoding="utf-8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pgq_core")
        for alias in node.names
    }

    assert imported | {"__version__"} == set(pgq_core.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pgq_core.nothing  # noqa: B018 - asking for it is the test


def test_importing_the_package_imports_no_driver() -> None:
    code = "import sys, pgq_core; sys.exit(bool({'psycopg', 'pydantic', 'orjson'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
