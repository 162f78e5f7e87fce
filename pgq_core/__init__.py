"""A job queue on PostgreSQL and nothing else."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Look the version up only when asked: the metadata costs milliseconds that a worker's start need not pay."""
    if name == "__version__":
        return version("pgq-tui")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
