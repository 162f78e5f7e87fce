"""What can keep the embedded server from serving."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgq_core.errors import PgqError

if TYPE_CHECKING:
    from pathlib import Path


class EmbeddedServerUnavailable(PgqError):
    """This machine cannot run the embedded server; another server can still be used through DATABASE_URL."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the embedded PostgreSQL cannot run here: {reason}; set DATABASE_URL to use another server")


class EmbeddedServerFailed(PgqError):
    """The embedded server was tried and did not do what was asked; its own last words are in the message."""

    def __init__(self, reason: str, *, log: Path | None = None, last_words: str = "") -> None:
        self.reason = reason
        self.log = log
        self.last_words = last_words
        where = f" (log: {log})" if log else ""
        words = f"\n{last_words}" if last_words else ""
        super().__init__(f"the embedded PostgreSQL {reason}{where}{words}")


class OlderDataDirectory(PgqError):
    """The data directory belongs to another major version of PostgreSQL, whose files this one cannot read."""

    def __init__(self, data_directory: Path, *, found: str, wanted: str) -> None:
        self.data_directory = data_directory
        self.found = found
        self.wanted = wanted
        super().__init__(
            f"{data_directory} was made by PostgreSQL {found}, but this version brings PostgreSQL {wanted}. "
            f"To keep its jobs, dump it with PostgreSQL {found}'s own programs:\n"
            f"  pg_ctl -w -D '{data_directory}' -o '-p 54329 -k /tmp' start && "
            f"pg_dump -h /tmp -p 54329 -U pgq -Fc -f pgq.dump pgq; pg_ctl -D '{data_directory}' stop\n"
            f"Then move the directory away, start again and load the dump:\n"
            f'  pg_restore --clean --if-exists -d "$(pgq-core url)" pgq.dump'
        )
