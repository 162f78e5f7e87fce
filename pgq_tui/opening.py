"""From the command line to a running console: settings, database, supervisor of this host, the app, and back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial

from pgq_core.domain.masking import Mask
from pgq_core.runtime import Database, use_database
from pgq_core.settings import Settings, load_settings
from pgq_tui.app import PgqApp
from pgq_tui.backend.masked import MaskedBackend
from pgq_tui.backend.postgres import PostgresBackend, shown_address
from pgq_tui.console_log import log_to_file
from pgq_tui.local_workers import bring_up_workers
from pgq_tui.screens.leaving import LocalWorkers
from pgq_tui.screens.session import Session
from pgq_tui.view_model.glyphs import IconChoice, pick_glyphs


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """What was asked for on the command line."""

    dsn: str | None = None
    schema: str | None = None
    is_demo: bool = False
    read_only: bool = False
    context: str = ""
    operator: str | None = None
    theme: str | None = None
    icons: str = "auto"
    refresh: float = 1.0
    mouse: bool = True


@dataclass(frozen=True, slots=True)
class Opened:
    """A database in use, how it is called, and what brings up the workers of this host."""

    settings: Settings
    database: Database
    address: str
    context: str
    bring_up: Callable[[Callable[[], Awaitable[str]]], Awaitable[LocalWorkers | None]] | None = None
    """Takes what finds out the schema, once the database answers."""


def open_console(options: ConsoleOptions) -> int:
    """Blocks until the operator leaves; the exit code. Raises PgqErrors that keep the console from opening."""
    log_to_file()
    with opened_demo(options) if options.is_demo else opened_database(options) as opened:
        settings = opened.settings
        postgres = PostgresBackend(
            opened.database.dsn,
            schema=opened.database.schema,
            stale_limit=settings.stale_limit,
            operator=settings.operator,
            read_only=settings.read_only,
            address=opened.address,
            may_look_elsewhere="db_schema" not in settings.model_fields_set,
        )
        session = Session(
            MaskedBackend(postgres, Mask(settings.mask_keys)),
            context=opened.context,
            is_read_only=settings.read_only,
            interval=options.refresh,
            zone=None,
        )
        choice: IconChoice = options.icons  # type: ignore[assignment]  # checked by the command line
        bring_up = partial(opened.bring_up, postgres.find_schema) if opened.bring_up else None
        app = PgqApp(session, bring_up=bring_up, theme=options.theme, glyphs=pick_glyphs(choice))
        app.run(mouse=options.mouse)
        if options.is_demo:
            _say("closing the shop ...")
        return app.return_code or 0


@contextlib.contextmanager
def opened_database(options: ConsoleOptions) -> Iterator[Opened]:
    """The database that was asked for. A foreign one is opened as it is: the console says what it lacks."""
    settings = load_settings(
        dsn=options.dsn, db_schema=options.schema, read_only=options.read_only or None, operator=options.operator
    )
    is_embedded = settings.dsn is None
    with use_database(settings, check=is_embedded, find_schema=is_embedded, on_silence=_say) as database:
        address = "embedded" if database.is_embedded else shown_address(database.dsn)

        async def bring_up(find_schema: Callable[[], Awaitable[str]]) -> LocalWorkers | None:
            return await bring_up_workers(settings, database, find_schema)

        yield Opened(settings, database, address, options.context, None if settings.read_only else bring_up)


@contextlib.contextmanager
def opened_demo(options: ConsoleOptions) -> Iterator[Opened]:
    """A shop with everything; it closes when the console does."""
    from pgq_tui.demo.session import start_demo

    demo = start_demo(on_progress=lambda step: _say(f"{step} ..."), on_silence=_say)
    try:
        settings = load_settings(
            dsn=demo.dsn,
            db_schema=demo.schema,
            read_only=options.read_only or None,
            operator=options.operator,
            heartbeat=1.0,
            stale_limit=10.0,
        )
        database = Database(demo.dsn, demo.schema, is_embedded=True)
        yield Opened(settings, database, "demo", options.context or "demo")
    finally:
        demo.stop()


def _say(words: str) -> None:
    """On the plain terminal, before and after the console."""
    print(words, file=sys.stderr, flush=True)  # noqa: T201
