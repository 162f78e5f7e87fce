"""The command `pgq-core`. Importing it costs little: each command's module is imported when the command is called."""

from __future__ import annotations

from pgq_core.cli.root import app, main

__all__ = ["app", "main"]
