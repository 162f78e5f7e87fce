"""`pgq-core api`: the HTTP server, and the tokens it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pgq_core.cli.failures import UsageError
from pgq_core.cli.given import settings_of
from pgq_core.cli.groups import new_group
from pgq_core.cli.options import AsJson
from pgq_core.cli.output import print_json, print_table, say
from pgq_core.cli.session import Session, run
from pgq_core.cli.times import parsed_span
from pgq_core.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from pgq_core.queries.tokens import TokenRow
    from pgq_core.runtime import Database

app = new_group("The HTTP API: serve it; make, list and revoke its tokens.", default="serve")
tokens = new_group("Tokens of the HTTP API: list, create, revoke.")
app.add_typer(tokens, name="tokens")

SCOPES = ("read", "enqueue", "operate")


@app.command()
def serve(
    ctx: typer.Context,
    *,
    host: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Where to listen (127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0 takes any free one (8080).")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Another name clients call this server by; * for any.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="URL", help="Another origin whose pages may send requests here.")
    ] = None,
    proxy: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="A proxy whose X-Forwarded-* headers are believed.")
    ] = None,
    require_tokens: Annotated[bool, typer.Option("--require-tokens", help="Ask for tokens on loopback, too.")] = False,
    open_metrics: Annotated[bool, typer.Option("--open-metrics", help="Serve /metrics without a token.")] = False,
    unknown_types: Annotated[
        str | None, typer.Option(metavar="refuse|accept", help="Jobs of types no worker announced (refuse).")
    ] = None,
    log_format: Annotated[str | None, typer.Option(metavar="json|text", help="How log lines look.")] = None,
    log_level: Annotated[str | None, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = None,
) -> None:
    """Serve the HTTP API and the page for dead letters until SIGTERM or SIGINT.

    On loopback nobody needs a token; on any other address everybody does.
    """
    settings = settings_of(ctx, log_format=log_format, log_level=log_level)
    try:
        from pgq_core.api.serving import serve as serve_api
        from pgq_core.api.settings import load_api_settings
    except ModuleNotFoundError as missing:
        raise UsageError(f"this needs more packages ({missing.name}): pip install '.[api]'") from missing
    from pgq_core.logs import configure_logs
    from pgq_core.runtime import use_database

    api = load_api_settings(
        host=host,
        port=port,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        proxies=tuple(proxy or ()),
        require_tokens=require_tokens or None,
        open_metrics=open_metrics or None,
        unknown_types=unknown_types,
    )
    log = configure_logs(format=settings.log_format, level=settings.log_level)
    try:
        with use_database(settings, check=not settings.dsn) as database:
            _refuse_misfit(database)
            serve_api(settings.model_copy(update={"dsn": database.dsn, "db_schema": database.schema}), api)
    finally:
        log.close()


@tokens.command("list")
def list_all(ctx: typer.Context, *, as_json: AsJson = False) -> None:
    """All tokens with what they may do; the tokens themselves are not kept."""

    async def work(session: Session) -> list[TokenRow]:
        from pgq_core.api.tokens import list_tokens

        return await list_tokens(session.conn, session.queries)

    found = run(ctx, work)
    if as_json:
        print_json(found)
        return
    columns = ("NAME", "SCOPES", "CREATED", "BY", "EXPIRES", "LAST USED", "REVOKED")
    print_table(columns, [_row(token) for token in found], nothing="there are no tokens")


@tokens.command()
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Who or what uses it; the audit shows it.")],
    *,
    scope: Annotated[list[str], typer.Option("--scope", "-s", metavar="|".join(SCOPES), help="What it may do.")],
    expires: Annotated[str | None, typer.Option(metavar="SPAN", help="Valid for so long, such as 90d.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it, once: only a hash of it is kept."""
    if unknown := [given for given in scope if given not in SCOPES]:
        raise UsageError(f"{unknown[0]!r} is no scope; there are {', '.join(SCOPES)}")
    lifetime = parsed_span(expires) if expires else None

    async def work(session: Session) -> str:
        from pgq_core.api.tokens import Scope, create_token

        made = await create_token(
            session.conn,
            session.queries,
            name=name,
            scopes=[Scope(given) for given in scope],
            operator=session.operations.operator,
            lifetime=lifetime,
        )
        return made.secret

    secret = run(ctx, work)
    if as_json:
        print_json({"name": name, "scopes": scope, "token": secret})
    else:
        typer.echo(secret)
        say("keep it now: it cannot be shown again")


@tokens.command()
def revoke(ctx: typer.Context, name: Annotated[str, typer.Argument(help="Its name.")]) -> None:
    """Take a token back for good. Servers stop accepting it within two seconds."""

    async def work(session: Session) -> None:
        from pgq_core.api.tokens import revoke_token

        await revoke_token(session.conn, session.queries, name=name, operator=session.operations.operator)

    run(ctx, work)
    say(f"revoked {name}")


def _refuse_misfit(database: Database) -> None:
    """A schema that does not fit ends the start; a database that is only away is waited for by the server."""
    from pgq_core.runtime import check_database

    if database.is_embedded:
        return
    try:
        check_database(database)
    except DatabaseUnavailable as error:
        say(f"{error}; starting all the same, /readyz tells when it is back")


def _row(token: TokenRow) -> tuple[object, ...]:
    scopes = ",".join(token.scopes)
    return (
        token.name,
        scopes,
        token.created_at,
        token.created_by,
        token.expires_at,
        token.last_used_at,
        token.revoked_at,
    )
