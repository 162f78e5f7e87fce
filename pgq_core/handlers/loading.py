"""Finding the application that `--app` names: `module`, `module:registry` or `path/file.py`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from pgq_core.errors import AppNotFound
from pgq_core.handlers.registry import Registry, default_registry


def load_app(app: str) -> Registry:
    """Imports the application and answers its registry. Raises AppNotFound; the application's own errors pass through.

    The current directory (for a file: its directory) is put on `sys.path`, as `python -m` and `python file.py` do.
    """
    name, attribute = _split(app)
    module = _load_file(app, Path(name)) if _is_path(name) else _import(app, name)
    registry = _attribute(app, module, attribute) if attribute else default_registry
    if len(registry) == 0:
        raise AppNotFound(app, _nothing_registered(module))
    return registry


def _split(app: str) -> tuple[str, str]:
    name, colon, attribute = app.strip().rpartition(":")
    if not colon:
        name, attribute = attribute, ""
    if not name or (colon and not attribute):
        raise AppNotFound(app, "write it as module, module:registry or path/file.py")
    return name, attribute


def _is_path(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def _import(app: str, name: str) -> ModuleType:
    _put_on_path(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only the module asked for, or a package above it: what is missing inside is the application's own error.
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise AppNotFound(app, f"there is no module {error.name!r} in {Path.cwd()} or on sys.path") from error
        raise
    except (TypeError, ValueError) as error:
        if name.startswith(".") or not name.replace(".", "_").isidentifier():
            raise AppNotFound(app, f"{name!r} is no module name") from error
        raise


def _load_file(app: str, path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise AppNotFound(app, f"there is no file {path}")
    known = sys.modules.get(path.stem)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        raise AppNotFound(app, f"the name {path.stem!r} is taken by a module that is already loaded; rename the file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise AppNotFound(app, f"{path} is no Python file")
    _put_on_path(path.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # before it runs, as import does: dataclasses and pickle look it up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise
    return module


def _put_on_path(directory: Path) -> None:
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))


def _attribute(app: str, module: ModuleType, attribute: str) -> Registry:
    found: object = module
    for step in attribute.split("."):
        found = getattr(found, step, None)
    if isinstance(found, Registry):
        return found
    what = "nothing" if found is None else f"a {type(found).__name__}"
    names = _registries(module)
    hint = f"; it holds the registries {', '.join(names)}" if names else ""
    raise AppNotFound(app, f"{attribute!r} in {module.__name__} is {what}, not a Registry{hint}")


def _nothing_registered(module: ModuleType) -> str:
    names = _registries(module)
    if names:
        return f"{module.__name__} registers nothing with the bare @handler; did you mean {module.__name__}:{names[0]}?"
    return f"{module.__name__} registers no handler"


def _registries(module: ModuleType) -> list[str]:
    return sorted(
        name for name, value in vars(module).items() if isinstance(value, Registry) and value is not default_registry
    )
