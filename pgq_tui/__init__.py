"""The terminal console of pgq_core, and the supervisor of its worker processes."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Look the version up only when asked: the metadata costs milliseconds that a headless supervisor need not pay."""
    if name == "__version__":
        return version("pgq-tui")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
