"""`pgq-core url`: the address of the database in use."""

from __future__ import annotations

from typing import Annotated

import typer

from pgq_core.cli.failures import UsageError
from pgq_core.cli.given import settings_of
from pgq_core.cli.groups import new_command
from pgq_core.cli.options import AsJson

app = new_command()


@app.command()
def url(
    ctx: typer.Context,
    *,
    tcp: Annotated[
        bool, typer.Option("--tcp", help="Over TCP, with its password: for programs that cannot use a socket.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the address for psql, producers and curl. The embedded server is started for it, and goes on running."""
    settings = settings_of(ctx)
    if settings.dsn:
        if tcp:
            raise UsageError("--tcp is for the embedded server; this database was given by its address")
        address = settings.dsn
    else:
        address = _embedded_address(settings.db_schema, tcp=tcp)
    if as_json:
        from pgq_core.cli.output import print_json
        from pgq_core.runtime import schema_in_use

        print_json({"url": address, "schema": schema_in_use(settings), "embedded": not settings.dsn})
    else:
        typer.echo(address)


def _embedded_address(schema: str, *, tcp: bool) -> str:
    from pgq_core.runtime import Database, embedded_server, prepare_embedded

    server = embedded_server()
    # Without a lease: whoever takes the address may still want it when this command has ended.
    address = server.start()
    prepare_embedded(Database(address, schema, is_embedded=True))
    if not tcp:
        return address
    tcp_url = server.status().tcp_url
    if tcp_url is None:
        raise UsageError("the embedded server has no TCP address yet; try again")
    return tcp_url
