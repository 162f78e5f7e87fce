"""Where a queue connects to, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from pgq_core.database import conninfo
from pgq_core.domain.enqueue import checked_patience, checked_text

SILENCE: Final = 5.0
"""Seconds beyond the server's own limit on a statement after which a silent server is given up."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to connect and how. `prepare` False: behind a pooler in transaction mode, so no session state."""

    dsn: str
    schema: str
    application_name: str
    prepare: bool
    timeout: float

    @classmethod
    def checked(cls, dsn: str, schema: str, application_name: str, *, prepare: bool, timeout: float) -> Target:
        """Raises InvalidJob, which names what was given wrong."""
        name = checked_text("application_name", application_name)
        return cls(checked_text("dsn", dsn), schema, name, prepare, checked_patience(timeout))

    @property
    def conninfo(self) -> str:
        return conninfo(
            self.dsn,
            application_name=self.application_name,
            statement_timeout=self.timeout,
            pinned_plans=True,
            is_pooled=not self.prepare,
        )

    @property
    def arguments(self) -> dict[str, Any]:
        # Statements ask for preparation themselves; without a threshold the driver never prepares.
        return {
            "autocommit": True,
            "prepare_threshold": 5 if self.prepare else None,
            "answer_within": self.timeout + SILENCE,
        }
