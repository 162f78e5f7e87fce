"""The operator's verbs. Grouped by what they act on; the groups share the journal that writes every action down."""

from __future__ import annotations

import getpass
import os
import socket

from pgq_core.domain.text import storable
from pgq_core.operations.dead_letters import DeadLetterVerbs, automatic_spread
from pgq_core.operations.fleet import FleetVerbs
from pgq_core.operations.importing import ImportVerb
from pgq_core.operations.jobs import JobVerbs
from pgq_core.operations.queues import QueueVerbs
from pgq_core.operations.undo import UndoVerb
from pgq_core.queries import Queries

__all__ = ["Operations", "automatic_spread", "local_operator"]

_LONGEST_OPERATOR = 200


class Operations(DeadLetterVerbs, ImportVerb, JobVerbs, QueueVerbs, FleetVerbs, UndoVerb):
    """All verbs. Each takes an autocommit connection and commits what it did with the row that tells of it."""

    def __init__(self, queries: Queries, *, operator: str | None = None) -> None:
        super().__init__(queries, storable(operator or local_operator(), limit=_LONGEST_OPERATOR))


def local_operator() -> str:
    """Who acts when nobody says otherwise: the OS user and this host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without an entry in the password file, as containers have
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"
