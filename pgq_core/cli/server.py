"""`pgq-core server`: the embedded PostgreSQL."""

from __future__ import annotations

from pgq_core.cli.consent import ask
from pgq_core.cli.groups import new_group
from pgq_core.cli.options import AsJson, Yes
from pgq_core.cli.output import print_fields, print_json, say
from pgq_core.runtime import embedded_server

app = new_group("The embedded PostgreSQL that serves when no address is given.", default="status")


@app.command()
def status(as_json: AsJson = False) -> None:
    """Say whether it runs, where its data is and who uses it. Starts nothing."""
    found = embedded_server().status()
    if as_json:
        print_json(
            {
                "running": found.running,
                "url": found.url,
                "version": found.version,
                "pid": found.pid,
                "data_directory": str(found.data_directory),
                "users": found.users,
            }
        )
        return
    print_fields(
        (
            ("state", "running" if found.running else "stopped"),
            ("version", found.version),
            ("address", found.url),
            ("pid", found.pid),
            ("data", str(found.data_directory)),
            ("users", ", ".join(f"pid {pid}" for pid in found.users) or "nobody"),
        )
    )


@app.command()
def stop(yes: Yes = False) -> None:
    """Stop it now; asks when somebody uses it."""
    server = embedded_server()
    found = server.status()
    if not found.running:
        if found.users:
            server.stop()  # those who use it would start one that died again
        say("the embedded server does not run")
        return
    if found.users:
        ask(f"Stop the server that {len(found.users)} other processes use?", yes=yes)
    server.stop()
    say("stopped")
