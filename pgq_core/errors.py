"""Every error the library raises: one root, each subclass with its fields and a message that says what to do."""

from __future__ import annotations

from shlex import quote


class PgqError(Exception):
    """Something went wrong in pgq."""


class DatabaseUnavailable(PgqError):
    """PostgreSQL cannot be reached or cannot serve right now; the call may be repeated."""

    def __init__(self, cause: str, *, sqlstate: str | None = None) -> None:
        self.cause = cause
        self.sqlstate = sqlstate
        super().__init__(f"the database cannot be reached right now: {cause}")


class InvalidPayload(PgqError):
    """A payload that PostgreSQL's jsonb cannot keep as it is; nothing was stored."""

    def __init__(self, reason: str, *, path: str = "data") -> None:
        self.reason = reason
        self.path = path
        super().__init__(f"{path}: {reason}")


class MalformedData(InvalidPayload):
    """Data that does not fit its handler's model. `problems`: pairs of path and message."""

    def __init__(self, job_type: str, problems: tuple[tuple[str, str], ...]) -> None:
        self.job_type = job_type
        self.problems = problems
        path, first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{first}{more}, so it is no data for {job_type!r}", path=path)


class InvalidJob(PgqError):
    """A job whose settings (queue, priority, time, attempts) are out of range; nothing was stored."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        self.reason = reason
        super().__init__(f"{field}: {reason}")


class KeyConflict(PgqError):
    """An idempotency key that belongs to a job with another payload or queue; nothing was stored."""

    def __init__(self, key: str, job_id: int) -> None:
        self.key = key
        self.job_id = job_id
        super().__init__(
            f"idempotency key {key!r} belongs to job {job_id} with another payload or queue; "
            "use another key or the same body"
        )


class JobNotFound(PgqError):
    """A job id that no table knows."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        super().__init__(
            f"there is no job {job_id} (its rows may be past retention, or its queue keeps none of a success)"
        )


class ClaimLost(PgqError):
    """A write of a claim that is no longer ours: another worker or the reaper has the job."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        super().__init__(f"job {job_id} is no longer held by this claim; drop the result, the job's new owner decides")


class JobFailed(PgqError):
    """A job whose result was waited for and that ended without one. `follow_up`: the job that a replay made of it."""

    def __init__(
        self,
        job_id: int,
        state: str,
        error: str | None,
        *,
        dead_letter_id: int | None = None,
        follow_up: int | None = None,
    ) -> None:
        self.job_id = job_id
        self.state = state
        self.error = error
        self.dead_letter_id = dead_letter_id
        self.follow_up = follow_up
        reason = f": {error}" if error else ""
        replay = f" (replayed as job {follow_up})" if follow_up is not None else ""
        super().__init__(f"job {job_id} ended as {state}{replay}{reason}")


class ResultNotReady(PgqError, TimeoutError):
    """A job that has not ended within the time its result was waited for; it goes on."""

    def __init__(self, job_id: int, timeout: float) -> None:
        self.job_id = job_id
        self.timeout = timeout
        super().__init__(f"job {job_id} has not ended within {timeout:g} s; it goes on, ask again")


class QueueClosed(PgqError):
    """A queue that was used after close()."""

    def __init__(self, reason: str = "this queue is closed; make another one") -> None:
        super().__init__(reason)


class DuplicateHandler(PgqError):
    """Two functions registered for one job type."""

    def __init__(self, job_type: str, first: str, second: str) -> None:
        self.job_type = job_type
        self.first = first
        self.second = second
        super().__init__(f"job type {job_type!r} is registered twice: {first} and {second}; rename one of them")


class InvalidHandler(PgqError):
    """A function or an option that cannot be registered as a handler."""

    def __init__(self, function: str, reason: str) -> None:
        self.function = function
        self.reason = reason
        super().__init__(f"{function} cannot be a handler: {reason}")


class AppNotFound(PgqError):
    """The `--app` argument names no module, file or registry."""

    def __init__(self, app: str, reason: str) -> None:
        self.app = app
        self.reason = reason
        super().__init__(f"cannot load --app {app!r}: {reason}")


class InvalidSettings(PgqError):
    """Settings that do not fit together; nothing was started."""


class SchemaError(PgqError):
    """The database's schema and this program do not fit."""


class SchemaMissing(SchemaError):
    """A database without our tables in the schema that was asked for. `elsewhere`: another schema that holds some."""

    def __init__(self, schema: str, *, elsewhere: str | None = None) -> None:
        self.schema = schema
        self.elsewhere = elsewhere
        remedy = f"run: pgq-core migrate --schema {quote(schema)}"
        if elsewhere is not None:
            remedy = f'schema "{elsewhere}" of this database does: pass schema="{elsewhere}" or set PGQ_SCHEMA'
        super().__init__(f'schema "{schema}" holds no job tables yet; {remedy}')


class SchemaOutdated(SchemaError):
    """A database whose schema is older than this program needs."""

    def __init__(self, schema: str, version: int, needed: int) -> None:
        self.schema = schema
        self.version = version
        self.needed = needed
        super().__init__(
            f'schema "{schema}" is at version {version}, this program needs {needed}; '
            f"run: pgq-core migrate --schema {quote(schema)}"
        )


class SchemaTooNew(SchemaError):
    """A database migrated by a newer program that this one cannot serve."""

    def __init__(self, schema: str, version: int, compatible_from: int, own: int) -> None:
        self.schema = schema
        self.version = version
        self.compatible_from = compatible_from
        self.own = own
        super().__init__(
            f'schema "{schema}" is at version {version} and serves programs from version {compatible_from} on; '
            f"this one knows version {own}: install a newer pgq-tui"
        )


class SchemaForeign(SchemaError):
    """A table named like ours that is not ours."""

    def __init__(self, schema: str, table: str, reason: str) -> None:
        self.schema = schema
        self.table = table
        self.reason = reason
        super().__init__(
            f'table "{schema}".{table} is not ours ({reason}) and was left alone; '
            "choose another schema: pgq-core migrate --schema NAME"
        )


class SchemaChanged(SchemaError):
    """A migration that was applied with another text than the one shipped here."""

    def __init__(self, schema: str, version: int) -> None:
        self.schema = schema
        self.version = version
        super().__init__(
            f'migration {version} of schema "{schema}" was applied with another text than this program ships'
        )


class AdoptionRefused(SchemaError):
    """Tables of the first form that somebody is working on right now."""


class ServerUnfit(SchemaError):
    """A server or database that cannot hold our schema: too old, or of another encoding than UTF-8."""


class MigrationBlocked(SchemaError):
    """A migration that could not get hold of the tables in time; nothing was changed by this step, repeat it later."""


class MissingRights(SchemaError):
    """The database role may not do what is needed."""

    def __init__(self, what: str, remedy: str) -> None:
        self.what = what
        self.remedy = remedy
        super().__init__(f"{what}; {remedy}")


class OperationRefused(PgqError):
    """An operator's action that cannot be carried out, or taken back, as a whole; nothing was changed."""


class OperationInterrupted(PgqError):
    """An operator's action that the database cut short; what was done stays done and is written down."""

    def __init__(self, operation_id: int, *, done: int, total: int, cause: str) -> None:
        self.operation_id = operation_id
        self.done = done
        self.total = total
        self.cause = cause
        super().__init__(
            f"operation {operation_id} stopped after {done} of {total}: {cause}; run it again for the rest"
        )


class ReadOnlyRefused(PgqError):
    """A change that was asked of a program which may only look; nothing was changed."""

    def __init__(self) -> None:
        super().__init__("refused, since only reading is allowed (--read-only, PGQ_READ_ONLY or the settings file)")
