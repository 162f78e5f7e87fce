"""Options that mean the same in every command."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]
Because = Annotated[str | None, typer.Option("--because", help="Why, for the audit.")]
Reason = Annotated[str | None, typer.Option("--reason", "--because", help="Why, for the audit.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="At most so many; 0 = all.")]
Queue = Annotated[str | None, typer.Option("--queue", "-q", help="Only this queue.")]
JobType = Annotated[str | None, typer.Option("--type", "-t", help="Only this job type.")]
Text = Annotated[str | None, typer.Option("--text", help="Only what has this text in its error or type.")]
