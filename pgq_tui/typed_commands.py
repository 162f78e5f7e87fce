"""Commands of the `:` line that take words: `:pause emails smtp is down`, `:scale mail 4`, `:filter queue:emails`."""

from __future__ import annotations

from pgq_core.domain.snapshot import PoolView, QueueView
from pgq_tui.command_line import CommandLine, CommandLineError
from pgq_tui.command_list import SCREENS
from pgq_tui.messages import GoTo
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.list_screen import ListScreen
from pgq_tui.screens.verbs import pause_queue, resume_queue, scale_pool, set_audit
from pgq_tui.theme import THEMES
from pgq_tui.view_model.audit_choice import typed_rule
from pgq_tui.view_model.palette import Token

_MOST_WORKERS = 10_000


async def typed_with_arguments(screen: ConsoleScreen, typed: CommandLine) -> bool:
    """Does the command with its words; false when it has none, and is like its key."""
    if not typed.arguments:
        _refuse_without_words(screen, typed)
        return False
    if typed.command.is_mutating and not screen.session.can_write:
        raise CommandLineError(screen.why_not())
    first, *rest = typed.arguments
    match typed.command.id:
        case "pause":
            await pause_queue(screen, _known_queue(screen, first).name, " ".join(rest) or None)
        case "resume":
            await resume_queue(screen, _known_queue(screen, first).name)
        case "audit":
            await _audit(screen, first, rest)
        case "scale_to":
            await _scale(screen, first, rest)
        case "filter":
            _filter(screen, " ".join(typed.arguments))
        case "theme":
            _theme(screen, first)
        case command_id if command_id.startswith("screen_"):
            line = " ".join(typed.arguments)
            screen.post_message(GoTo(command_id.removeprefix("screen_"), target=first, filter_line=line))
        case _:
            raise CommandLineError(f"{typed.command.title} takes no words")
    return True


def _refuse_without_words(screen: ConsoleScreen, typed: CommandLine) -> None:
    if typed.command.id in {"resume", "scale_to"}:
        raise CommandLineError(f"write :{typed.command.words[0]} {typed.command.argument}")
    if not typed.command.is_on(screen.ID):
        places = ", ".join(f"{one.number} {one.title}" for one in SCREENS if typed.command.is_on(one.id))
        raise CommandLineError(f"{typed.command.title} works on {places}")


def _known_queue(screen: ConsoleScreen, name: str) -> QueueView:
    """The queue of this name, or whose name alone begins so; a word that no queue has is a slip of the finger."""
    queues = {queue.name: queue for queue in screen.session.overview.queues} if screen.session.overview else {}
    if name in queues:
        return queues[name]
    longer = [queue for known, queue in queues.items() if known.startswith(name)]
    if len(longer) == 1:
        return longer[0]
    raise CommandLineError(f"there is no queue {name!r}" + (f": {', '.join(list(queues)[:8])}" if queues else ""))


async def _audit(screen: ConsoleScreen, name: str, rest: list[str]) -> None:
    rule = typed_rule(rest)
    if rule is None:
        raise CommandLineError("write :audit QUEUE all, failures or sample, and the share after it: sample 1%")
    await set_audit(screen, _known_queue(screen, name), rule)


async def _scale(screen: ConsoleScreen, name: str, rest: list[str]) -> None:
    if len(rest) != 1 or not (rest[0].isascii() and rest[0].isdigit()) or int(rest[0][:6]) > _MOST_WORKERS:
        raise CommandLineError("write :scale POOL NUMBER")
    pools = screen.session.overview.pools if screen.session.overview else ()
    pool = _known_pool(pools, name)
    await scale_pool(screen, pool.host, pool.name, int(rest[0]))


def _known_pool(pools: tuple[PoolView, ...], name: str) -> PoolView:
    found = [pool for pool in pools if name in {pool.name, f"{pool.name}@{pool.host}"}]
    if len(found) == 1:
        return found[0]
    if found:
        raise CommandLineError(f"{name!r} is on {', '.join(pool.host for pool in found)}: write {name}@HOST")
    raise CommandLineError(
        f"there is no pool {name!r}: {', '.join(pool.name for pool in pools[:8]) or 'none is defined'}"
    )


def _filter(screen: ConsoleScreen, line: str) -> None:
    if not isinstance(screen, ListScreen):
        raise CommandLineError("this screen has no filter: go to 2, 3, 4, 5 or 6")
    screen.narrow(line)


def _theme(screen: ConsoleScreen, name: str) -> None:
    names = [theme.name for theme in THEMES]
    wanted = name if name in names else f"pgq-{name}"
    if wanted not in names:
        raise CommandLineError(f"there is no theme {name!r}: {', '.join(names)}")
    screen.app.theme = wanted
    screen.say(f"theme {wanted}", Token.TEXT)
