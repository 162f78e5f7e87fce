"""How our commands behave as a family: found lazily, lists by default, global options anywhere on the line."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import typer
from typer.core import TyperGroup

# Of click, which newer versions of typer bring along as a copy of their own: there is no name that fits both.
Context: TypeAlias = Any
Command: TypeAlias = Any
Formatter: TypeAlias = Any

GLOBAL_VALUES = ("--dsn", "--schema", "--operator")
GLOBAL_FLAGS = ("--debug", "--read-only")
GLOBALS_NOTE = "Everywhere: --dsn ADDRESS, --schema NAME, --operator NAME, --read-only, --debug."


def new_group(help_text: str, *, default: str | None = "list") -> typer.Typer:
    """A group of commands; `default` is the one that is meant when none is named."""
    group = type("Group", (GroupWithDefault,), {"default_command": default})
    return typer.Typer(
        cls=group,
        help=help_text,
        epilog=GLOBALS_NOTE,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=default is None,
    )


def new_command() -> typer.Typer:
    """The home of a single command."""
    return typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, epilog=GLOBALS_NOTE)


class GroupWithDefault(TyperGroup):
    """`pgq-core dead --queue a` means `pgq-core dead list --queue a`."""

    default_command: str | None = None

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        if self.default_command and (not args or (args[0].startswith("-") and args[0] != "--help")):
            args = [self.default_command, *args]
        return super().parse_args(ctx, args)


class LazyGroup(TyperGroup):
    """The root: knows its commands by name and help, and imports the module of the one that is called."""

    lazy: Mapping[str, tuple[str, str]] = {}
    """Name -> (module, help)."""

    def list_commands(self, ctx: Context) -> list[str]:  # noqa: ARG002  # the signature of the base class
        return list(self.lazy)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        command = typer.main.get_command(import_module(self.lazy[cmd_name][0]).app)
        command.name = cmd_name
        return command

    def format_commands(self, ctx: Context, formatter: Formatter) -> None:  # noqa: ARG002  # the signature of the base class
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_text) for name, (_, help_text) in self.lazy.items()])

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, globals_first(args))

    def invoke(self, ctx: Context) -> object:
        from pgq_core.cli.failures import explained

        with explained(debug=bool(ctx.params.get("debug"))):
            return super().invoke(ctx)


def globals_first(args: list[str]) -> list[str]:
    """Moves global options, which may stand anywhere, before the command.

    >>> globals_first(["dead", "list", "--dsn", "service=x", "--json", "--", "--debug"])
    ['--dsn', 'service=x', 'dead', 'list', '--json', '--', '--debug']
    """
    first: list[str] = []
    rest: list[str] = []
    waiting = iter(args)
    for arg in waiting:
        if arg == "--":
            return [*first, *rest, arg, *waiting]
        if arg in GLOBAL_FLAGS or arg.startswith(tuple(f"{name}=" for name in GLOBAL_VALUES)):
            first.append(arg)
        elif arg in GLOBAL_VALUES:
            first.extend([arg, *(value for value in [next(waiting, None)] if value is not None)])
        else:
            rest.append(arg)
    return first + rest
