"""`--app`: modules, registries in modules, files; and what is said when there is none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from pgq_core.errors import AppNotFound
from pgq_core.handlers import default_registry, load_app, loading, registry


@pytest.fixture(autouse=True)
def application_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory to import from, an empty default registry, and no trace of it afterwards."""
    modules = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    fresh = registry.Registry()
    monkeypatch.setattr(loading, "default_registry", fresh)
    monkeypatch.setattr("pgq_core.handlers.handler", fresh.handler)
    yield tmp_path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text))


BARE = """
    from pgq_core.handlers import handler

    @handler("bare_type")
    def bare(data): ...
"""
OWN = """
    from pgq_core.handlers import Registry

    jobs = Registry()

    @jobs.handler("own_type")
    def own(data): ...

    class Holder:
        inner = jobs
"""


def test_a_module_brings_what_it_registers_with_the_bare_decorator(application_directory: Path) -> None:
    write(application_directory / "bare_tasks.py", BARE)

    assert load_app("bare_tasks").types == ("bare_type",)


def test_a_module_inside_a_package_is_found(application_directory: Path) -> None:
    write(application_directory / "shop_of_test/__init__.py", "")
    write(application_directory / "shop_of_test/tasks.py", BARE)

    assert load_app("shop_of_test.tasks").types == ("bare_type",)


@pytest.mark.parametrize("app", ["own_tasks:jobs", "own_tasks:Holder.inner", "./own_tasks.py:jobs"])
def test_a_registry_in_a_module_is_found_by_name(application_directory: Path, app: str) -> None:
    write(application_directory / "own_tasks.py", OWN)

    assert load_app(app).types == ("own_type",)


def test_a_file_is_loaded_with_its_neighbours(application_directory: Path) -> None:
    write(application_directory / "deep/neighbour_of_file.py", "NAME = 'from_file'")
    write(
        application_directory / "deep/file_tasks.py",
        """
        from dataclasses import dataclass
        from pgq_core.handlers import handler
        from neighbour_of_file import NAME

        @dataclass
        class Order:
            number: int

        @handler(NAME)
        def run(data): ...
        """,
    )

    assert load_app("deep/file_tasks.py").types == ("from_file",)
    assert load_app(str(application_directory / "deep/file_tasks.py")).types == ("from_file",)
    assert sys.modules["file_tasks"].Order.__module__ == "file_tasks"


@pytest.mark.parametrize(
    ("app", "reason"),
    [
        ("no_such_module", "there is no module 'no_such_module'"),
        ("no_such_package.tasks", "there is no module 'no_such_package'"),
        ("own_tasks.deeper", "there is no module 'own_tasks.deeper'"),
        ("own_tasks:nothing", "is nothing, not a Registry; it holds the registries jobs"),
        ("own_tasks:Holder", "is a type, not a Registry"),
        ("own_tasks", "did you mean own_tasks:jobs?"),
        ("empty_tasks", "registers no handler"),
        ("no/such/file.py", "there is no file"),
        ("own_tasks:", "write it as"),
        (":jobs", "write it as"),
        ("", "write it as"),
        (".relative", "is no module name"),
        ("json.py", "is taken by a module that is already loaded"),
    ],
)
def test_what_cannot_be_found_is_said_with_the_reason(application_directory: Path, app: str, reason: str) -> None:
    import json  # noqa: F401 - a module of that name is loaded

    write(application_directory / "own_tasks.py", OWN)
    write(application_directory / "empty_tasks.py", "")
    write(application_directory / "json.py", "")

    with pytest.raises(AppNotFound) as missing:
        load_app(app)

    assert reason in str(missing.value)
    assert missing.value.app == app


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("import no_such_dependency", ModuleNotFoundError),
        ("1 / 0", ZeroDivisionError),
        ("def broken(:", SyntaxError),
        ("raise ValueError", ValueError),
    ],
)
@pytest.mark.parametrize("app", ["broken_tasks", "broken_tasks.py"])
def test_errors_of_the_application_itself_pass_through(
    application_directory: Path, text: str, error: type[Exception], app: str
) -> None:
    write(application_directory / "broken_tasks.py", text)

    with pytest.raises(error) as raised:
        load_app(app)

    assert not isinstance(raised.value, AppNotFound)
    assert "broken_tasks" not in sys.modules


def test_the_default_registry_is_one_object() -> None:
    assert default_registry is registry.default_registry
