from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
import typer

from pgq_core.cli.root import COMMANDS

TEXT = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_its_verbs_stand_in_the_documentation(command: str) -> None:
    click_command = typer.main.get_command(import_module(COMMANDS[command][0]).app)
    verbs = getattr(click_command, "commands", {})

    assert f"pgq-core {command}" in TEXT
    for verb in set(verbs) - {"list", "status", "stop", "restart"}:
        assert f"pgq-core {command} {verb}" in TEXT, verb
