"""An embedded PostgreSQL server: started on demand, shared by a user's processes, stopped by the last one to leave."""

from __future__ import annotations

from pgq_core.embedded.errors import EmbeddedServerFailed, EmbeddedServerUnavailable, OlderDataDirectory
from pgq_core.embedded.server import EmbeddedServer
from pgq_core.embedded.status import ServerStatus

__all__ = ["EmbeddedServer", "EmbeddedServerFailed", "EmbeddedServerUnavailable", "OlderDataDirectory", "ServerStatus"]
