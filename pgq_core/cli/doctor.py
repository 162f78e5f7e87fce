"""`pgq-core doctor`: what is set, and whether the database is as it should be."""

from __future__ import annotations

import typer

from pgq_core.cli.checkup import Finding, Verdict, check_up
from pgq_core.cli.failures import ExitCode
from pgq_core.cli.given import global_flags, settings_of
from pgq_core.cli.groups import new_command
from pgq_core.cli.options import AsJson
from pgq_core.cli.output import print_json, print_table, print_text
from pgq_core.cli.setting_sources import SettingOrigin, setting_origins
from pgq_core.cli.unknown_settings import unknown_settings
from pgq_core.runtime import Database, prepare_embedded, use_database

app = new_command()


@app.command()
def doctor(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show where each setting came from, and check connection, schema, rights, pooler, clock and vacuum.

    Exit code 3 when a check failed; warnings do not count.
    """
    settings = settings_of(ctx)
    origins = setting_origins(settings, global_flags(ctx))
    with use_database(settings, check=False) as database:
        if database.is_embedded:
            prepare_embedded(database)
        findings = [*unknown_settings(), *check_up(settings, database)]
        origins = [_found(origin, database) for origin in origins]
    if as_json:
        print_json({"settings": origins, "checks": findings})
    else:
        print_table(("SETTING", "VALUE", "FROM"), [(o.name, o.value, o.source) for o in origins], nothing="")
        print_text("")
        print_table(("CHECK", "", "FINDING"), [_row(finding) for finding in findings], nothing="")
    if any(finding.verdict is Verdict.FAIL for finding in findings):
        raise typer.Exit(ExitCode.DATABASE)


def _found(origin: SettingOrigin, database: Database) -> SettingOrigin:
    """The schema that is used may be another than the one that is set by default."""
    if origin.name != "db_schema" or origin.value == database.schema:
        return origin
    return SettingOrigin(origin.name, database.schema, f"found: {origin.value} holds no tables here")


def _row(finding: Finding) -> tuple[str, str, str]:
    remedy = f" -> {finding.remedy}" if finding.remedy else ""
    return finding.check, finding.verdict.value, f"{finding.detail}{remedy}"
