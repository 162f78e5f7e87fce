"""All verbs of a queue over one schema, as flows: what the plain and the asynchronous queue have in common."""

from __future__ import annotations

import os
import secrets
import socket
from typing import Final

from pgq_core.domain.enqueue import checked_max_attempts, checked_max_payload, checked_text
from pgq_core.domain.job import DEFAULT_MAX_ATTEMPTS
from pgq_core.domain.payload import MAX_BYTES
from pgq_core.errors import InvalidJob
from pgq_core.handlers import Registry, default_registry
from pgq_core.job_queue.announced import AnnouncedTypes
from pgq_core.job_queue.claiming import Claiming
from pgq_core.job_queue.enqueueing import Enqueueing
from pgq_core.job_queue.following import Following
from pgq_core.queries import Queries

DEFAULT_SCHEMA: Final = "pgq_core"
TIMEOUT: Final = 30.0
MAX_CONNECTIONS: Final = 10


class Verbs:
    """Holds no connection."""

    def __init__(
        self, schema: str | None, registry: Registry | None, *, max_attempts: int | None, max_payload: int | None
    ) -> None:
        if registry is not None and not isinstance(registry, Registry):
            raise InvalidJob("registry", f"a {type(registry).__name__} is no Registry")
        self.schema = checked_text("schema", schema or "") or os.environ.get("PGQ_SCHEMA") or DEFAULT_SCHEMA
        known = default_registry if registry is None else registry
        queries = Queries(self.schema)
        announced = AnnouncedTypes(queries)
        self.enqueueing = Enqueueing(
            queries,
            announced,
            known,
            max_attempts=DEFAULT_MAX_ATTEMPTS if max_attempts is None else checked_max_attempts(max_attempts),
            max_bytes=MAX_BYTES if max_payload is None else checked_max_payload(max_payload),
        )
        self.claiming = Claiming(
            queries, announced, known, worker_id=f"{socket.gethostname()}-loop-{secrets.token_hex(4)}"
        )
        self.following = Following(queries)
