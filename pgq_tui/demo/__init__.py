"""The shop of `pgq-tui --demo`: handlers that do real work, producers that never rest, and trouble in small doses."""

from __future__ import annotations
