"""Bearer tokens: made once, kept as a hash, looked up with each request and remembered for two seconds."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from pgq_core.api.connections import Connections
from pgq_core.domain.enqueue import checked_name
from pgq_core.errors import OperationRefused
from pgq_core.operations.journal import Action, add_operation
from pgq_core.queries import Queries
from pgq_core.queries.tokens import TokenRow

PREFIX: Final = "pgq_"
REMEMBERED_FOR: Final = 2.0
"""Seconds for which a token goes on to be accepted after it was revoked."""
_MOST_REMEMBERED: Final = 1000
_LONGEST_TOKEN: Final = 200
_MOST_LISTED: Final = 1000


class Scope(StrEnum):
    READ = "read"
    ENQUEUE = "enqueue"
    OPERATE = "operate"


ALL_SCOPES: Final = frozenset(Scope)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as the audit shows it, and what that one may do."""

    name: str
    scopes: frozenset[Scope]


@dataclass(frozen=True, slots=True)
class NewToken:
    """`secret` is shown now and never again."""

    id: int
    secret: str


async def create_token(
    conn: AsyncConnection[Any],
    queries: Queries,
    *,
    name: str,
    scopes: Sequence[Scope],
    operator: str,
    lifetime: timedelta | None = None,
) -> NewToken:
    """Makes a token and writes it down as an operation. Raises OperationRefused when a live one has this name."""
    secret = PREFIX + secrets.token_urlsafe(32)
    wanted = checked_name("name", name)
    async with conn.transaction():
        token_id = await queries.add_api_token(
            name=wanted, digest=digest_of(secret), scopes=sorted(set(scopes)), operator=operator, lifetime=lifetime
        ).fetch_one(conn)
        if token_id is None:
            raise OperationRefused(f"there is a live token {name!r} already; revoke it first, or choose another name")
        action = Action("create_token", f"token {wanted}", parameters={"scopes": sorted(set(scopes))})
        await add_operation(queries, conn, operator, action, affected=1, refused=0, undo=None)
    return NewToken(token_id, secret)


async def revoke_token(conn: AsyncConnection[Any], queries: Queries, *, name: str, operator: str) -> None:
    """Takes a token back for good. Raises OperationRefused when there is no live one of this name."""
    async with conn.transaction():
        if await queries.revoke_api_token(name=name, operator=operator).fetch_one(conn) is None:
            raise OperationRefused(f"there is no live token {name!r}")
        action = Action("revoke_token", f"token {name}")
        await add_operation(queries, conn, operator, action, affected=1, refused=0, undo=None)


async def list_tokens(conn: AsyncConnection[Any], queries: Queries) -> list[TokenRow]:
    return await queries.list_api_tokens(limit=_MOST_LISTED).fetch_all(conn)


def digest_of(secret: str) -> bytes:
    """A plain hash will do: the tokens are 256 random bits, which nobody finds by trying."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


class TokenBook:
    """Finds the caller behind a token."""

    def __init__(self, queries: Queries, connections: Connections) -> None:
        self._queries = queries
        self._connections = connections
        self._known: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()

    async def find(self, secret: str) -> Caller | None:
        """None for a token that is unknown, revoked or past its time. Raises DatabaseUnavailable."""
        if not secret.startswith(PREFIX) or len(secret) > _LONGEST_TOKEN:
            return None
        digest = digest_of(secret)
        remembered = self._known.get(digest)
        if remembered is not None and time.monotonic() < remembered[0]:
            return remembered[1]
        self._known.pop(digest, None)
        caller = await self._look_up(digest)
        if caller is not None:
            self._known[digest] = (time.monotonic() + REMEMBERED_FOR, caller)
            if len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return caller

    async def _look_up(self, digest: bytes) -> Caller | None:
        async with self._connections.connection() as conn:
            found = await self._queries.find_api_token(digest=digest).fetch_one(conn)
            if found is None:
                return None
            # A role that may only look: when the token was used is nice to know, and no more.
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction):
                await self._queries.touch_api_token(token_id=found.id).execute(conn)
        return Caller(f"token {found.name}", frozenset(Scope(scope) for scope in found.scopes))
