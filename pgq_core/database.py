"""Opening connections to PostgreSQL, and telling one kind of trouble from another."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgq_core.bounded import ANSWER_WITHIN, BoundedAsyncConnection, BoundedConnection
from pgq_core.errors import DatabaseUnavailable, MissingRights, PgqError

# A half-open network must not hold a call for the kernel's default of two hours.
_NETWORK = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
# A payload may hold any character, whatever PGCLIENTENCODING or the address says: one that LATIN1 lacks would fail all
# claims of its queue.
_ENCODING = {"client_encoding": "UTF8"}
# Our statements are written for READ COMMITTED, and our driver reads and writes values in PostgreSQL's usual forms,
# whatever the administrator's defaults are.
_SESSION = (
    "-c default_transaction_isolation=read\\ committed -c timezone=UTC -c datestyle=ISO"
    " -c intervalstyle=postgres -c array_nulls=on -c extra_float_digits=1"
)
# The worker's statements touch rows by primary key or in the order of one index. With statistics of a queue that was
# empty a minute ago the planner would rather scan the whole table: 120 us a job where nested loops take 10.
_PINNED_PLANS = (
    " -c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c enable_hashjoin=off"
    " -c enable_mergejoin=off -c jit=off"
)

LOCK_LIMIT = 2.0
"""Seconds that a worker's or keeper's write waits for a row that somebody else has locked: an operator's forgotten
transaction, say. It is no trouble of the database, and the other jobs must not wait with it.
"""

IDLE_LIMIT = 30.0
"""Seconds after which the server ends a session of ours that says nothing in the middle of its transaction.

Ours follow one statement by the next. Only a process that is suspended, or a host that hangs, keeps one open, and with
it the locks on its jobs, which nobody else could give back before it goes on.
"""

_TRANSIENT_CLASSES = ("08", "40", "53", "55", "57", "58")
_READ_ONLY = "25006"
_SESSION_ENDED = ("25P03", "25P04")  # by the limit on idle time in a transaction, or on the transaction itself


def conninfo(
    dsn: str,
    *,
    application_name: str,
    statement_timeout: float | None = None,
    idle_limit: float | None = None,
    lock_limit: float | None = None,
    read_only: bool = False,
    pinned_plans: bool = False,
    is_pooled: bool = False,
) -> str:
    """The connection string with our network limits and session settings; what `dsn` itself says wins.

    `statement_timeout`, `idle_limit` (within a transaction), `lock_limit` (for one lock): seconds; None: the server's.
    `is_pooled`: without session settings, which a pooler in transaction mode refuses or drops.
    """
    if is_pooled:
        return make_conninfo(
            dsn, **{**_NETWORK, "application_name": application_name, **conninfo_to_dict(dsn), **_ENCODING}
        )
    options = _SESSION
    if statement_timeout is not None:
        options += f" -c statement_timeout={int(statement_timeout * 1000)}"
    if idle_limit is not None:
        options += f" -c idle_in_transaction_session_timeout={int(idle_limit * 1000)}"
    if lock_limit is not None:
        options += f" -c lock_timeout={int(lock_limit * 1000)}"
    if pinned_plans:
        options += _PINNED_PLANS
    if read_only:
        options += " -c default_transaction_read_only=on"
    given = conninfo_to_dict(dsn)
    if given_options := given.pop("options", None):
        options += f" {given_options}"
    defaults: dict[str, Any] = {**_NETWORK, "application_name": application_name}
    return make_conninfo("", **{**defaults, **given, **_ENCODING, "options": options})


async def connect(
    dsn: str,
    *,
    application_name: str,
    statement_timeout: float | None = None,
    idle_limit: float | None = IDLE_LIMIT,
    lock_limit: float | None = None,
    read_only: bool = False,
    pinned_plans: bool = False,
    answer_within: float | None = None,
) -> AsyncConnection[Any]:
    """An autocommit connection; `pinned_plans` for a worker's own statements.

    `idle_limit`: None where other people's code runs between the statements of a transaction.
    `answer_within`: seconds after which a silent server is given up; None: the caller looks at the clock.
    Through a pooler that refuses session settings it comes without them, and without prepared statements. Raises
    DatabaseUnavailable when the server cannot be reached or refuses.
    """
    target = conninfo(
        dsn,
        application_name=application_name,
        statement_timeout=statement_timeout,
        idle_limit=idle_limit,
        lock_limit=lock_limit,
        read_only=read_only,
        pinned_plans=pinned_plans,
    )
    try:
        return await _opened(target, answer_within)
    except psycopg.Error as error:
        if not is_refusal_of_a_pooler(error):
            raise translated(error) from error
    pooled = conninfo(dsn, application_name=application_name, is_pooled=True)
    try:
        return await _opened(pooled, answer_within, prepare_threshold=None)
    except psycopg.Error as error:
        raise translated(error) from error


async def _opened(conninfo: str, answer_within: float | None, **arguments: Any) -> AsyncConnection[Any]:  # noqa: ANN401
    if answer_within is None:
        return await AsyncConnection.connect(conninfo, autocommit=True, **arguments)
    return await BoundedAsyncConnection.connect(conninfo, autocommit=True, answer_within=answer_within, **arguments)


def connect_sync(
    dsn: str,
    *,
    application_name: str,
    statement_timeout: float | None = None,
    idle_limit: float | None = IDLE_LIMIT,
    read_only: bool = False,
    pinned_plans: bool = False,
    answer_within: float = ANSWER_WITHIN,
) -> BoundedConnection:
    """The plain face of `connect`. Nobody can break off its calls from outside, so they have a limit by default."""
    target = conninfo(
        dsn,
        application_name=application_name,
        statement_timeout=statement_timeout,
        idle_limit=idle_limit,
        read_only=read_only,
        pinned_plans=pinned_plans,
    )
    try:
        return BoundedConnection.connect(target, autocommit=True, answer_within=answer_within)
    except psycopg.Error as error:
        if not is_refusal_of_a_pooler(error):
            raise translated(error) from error
    pooled = conninfo(dsn, application_name=application_name, is_pooled=True)
    try:
        return BoundedConnection.connect(pooled, autocommit=True, prepare_threshold=None, answer_within=answer_within)
    except psycopg.Error as error:
        raise translated(error) from error


def is_refusal_of_a_pooler(error: psycopg.Error) -> bool:
    """PgBouncer's words for session settings in the connection string. PostgreSQL itself has none like them."""
    return "unsupported startup parameter" in str(error)


def is_pooled(conn: AsyncConnection[Any] | Connection[Any]) -> bool:
    """Whether `connect` got this connection from a pooler: the next statement may meet another session."""
    return conn.prepare_threshold is None


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed later: lost connection, failover, full disk, timeout, serialization failure."""
    if isinstance(error, DatabaseUnavailable):
        return True
    if not isinstance(error, psycopg.Error):
        return isinstance(error, OSError)
    if error.sqlstate is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return error.sqlstate.startswith(_TRANSIENT_CLASSES) or error.sqlstate in (_READ_ONLY, *_SESSION_ENDED)


def is_missing_partition(error: BaseException) -> bool:
    """Whether `job_runs` has no place for the day of a run. A check that somebody has put on a table has a name."""
    return isinstance(error, psycopg.errors.CheckViolation) and error.diag.constraint_name is None


def translated(error: psycopg.Error) -> PgqError | psycopg.Error:
    """Our own error for the driver's, where we have one that says more; else the driver's."""
    if is_transient(error):
        return DatabaseUnavailable(first_line(error), sqlstate=error.sqlstate)
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return MissingRights(first_line(error), "grant it to this role, see docs/rights.md")
    return error


def first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
