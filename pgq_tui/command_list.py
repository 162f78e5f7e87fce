"""The list of commands: one line or two for each thing an operator can do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScreenInfo:
    """One screen that exists: its mode, the digit that opens it, its name on the tab and in full."""

    id: str
    number: int
    label: str
    title: str


SCREENS = (
    ScreenInfo("dash", 1, "Dash", "Dashboard"),
    ScreenInfo("queues", 2, "Queues", "Queues"),
    ScreenInfo("jobs", 3, "Jobs", "Jobs"),
    ScreenInfo("runs", 4, "Runs", "Runs"),
    ScreenInfo("dead", 5, "Dead", "Dead letters"),
    ScreenInfo("workers", 6, "Workers", "Workers"),
)
GROUPS = ("ACT", "SELECT", "VIEW", "GO", "APP")


@dataclass(frozen=True, slots=True)
class Command:
    """One thing to do. `action` is Textual's; without `screens` it works everywhere.

    `value` ranks the key hints, 0 keeps it out of them. `words` are its names on the `:` line; a command that takes
    something there says so in `argument`.
    """

    id: str
    action: str
    keys: tuple[str, ...]
    shown: str
    label: str
    description: str
    group: str
    screens: frozenset[str] = frozenset()
    is_mutating: bool = False
    value: int = 0
    words: tuple[str, ...] = ()
    argument: str = ""
    by_screen: tuple[tuple[str, str], ...] = ()
    """Screens on which it does something of its own, and the description of that."""

    def describe(self, screen: str) -> str:
        return dict(self.by_screen).get(screen, self.description)

    def is_on(self, screen: str) -> bool:
        return not self.screens or screen in self.screens

    @property
    def title(self) -> str:
        return self.label or self.id.replace("_", " ")


def _command(
    group: str,
    command_id: str,
    keys: str,
    label: str,
    description: str,
    *,
    on: str = "",
    action: str = "",
    shown: str = "",
    value: int = 0,
    words: str = "",
    argument: str = "",
    by_screen: tuple[tuple[str, str], ...] = (),
) -> Command:
    """A command in its short form: lists are words in a string, the action is named like the command."""
    names = tuple(keys.split())
    return Command(
        command_id,
        action or command_id,
        names,
        shown or (names[0] if names else ""),
        label,
        description,
        group,
        frozenset(on.split()),
        group == "ACT",
        value,
        tuple(words.split()),
        argument,
        by_screen,
    )


def act(
    command_id: str, keys: str, label: str, description: str, **more: str | int | tuple[tuple[str, str], ...]
) -> Command:
    """A command that changes the system: gone in a read-only console, off while the database is away."""
    return _command("ACT", command_id, keys, label, description, **more)  # type: ignore[arg-type]  # by name


def select(
    command_id: str, keys: str, label: str, description: str, **more: str | int | tuple[tuple[str, str], ...]
) -> Command:
    return _command("SELECT", command_id, keys, label, description, **more)  # type: ignore[arg-type]  # by name


def view(
    command_id: str, keys: str, label: str, description: str, **more: str | int | tuple[tuple[str, str], ...]
) -> Command:
    return _command("VIEW", command_id, keys, label, description, **more)  # type: ignore[arg-type]  # by name


def go(
    command_id: str, keys: str, label: str, description: str, **more: str | int | tuple[tuple[str, str], ...]
) -> Command:
    return _command("GO", command_id, keys, label, description, **more)  # type: ignore[arg-type]  # by name


def app(
    command_id: str, keys: str, label: str, description: str, **more: str | int | tuple[tuple[str, str], ...]
) -> Command:
    return _command("APP", command_id, keys, label, description, **more)  # type: ignore[arg-type]  # by name


COMMANDS: tuple[Command, ...] = (
    act("pause", "p", "pause", "Pause the selected queue, or resume it", on="dash queues", action="toggle_pause",
        value=90, words="pause", argument="QUEUE [REASON]"),
    act("audit", "A", "audit", "Set which runs of the selected queue leave a row: all, failures, a sample", on="queues",
        value=58, words="audit", argument="QUEUE all|failures|sample [SHARE]"),
    act("scale_up", "plus equals_sign", "more", "One more worker in the selected pool", on="dash workers",
        action="scale(1)", shown="+", value=86),
    act("scale_down", "minus", "fewer", "One worker less in the selected pool: it drains", on="dash workers",
        action="scale(-1)", shown="-", value=85),
    act("replay", "R", "replay", "Send the marked dead letters, or the selected one, back to their queue", on="dead",
        value=95, words="replay"),
    act("discard", "D", "discard", "Give up the marked dead letters, or the selected one", on="dead", value=94,
        words="discard"),
    act("cancel_job", "X", "cancel", "Cancel the selected job; a running one is asked to stop", on="jobs runs",
        value=90, words="cancel"),
    act("drain_worker", "D", "drain", "Let the selected worker finish what runs, then leave", on="workers", value=84,
        words="drain"),
    act("restart_worker", "R", "restart", "Drain the selected worker and start another in its place", on="workers",
        value=83, words="restart"),
    act("undo", "z", "undo", "Take the last replay, discard, pause, scaling or audit of this session back",
        action="app.undo", value=14, words="undo"),
    act("resume", "", "resume", "Resume a paused queue", action="type_command('resume ')", words="resume",
        argument="QUEUE"),
    act("scale_to", "", "scale", "Give a pool a number of workers", action="type_command('scale ')", words="scale",
        argument="POOL NUMBER"),

    select("mark", "space", "mark", "Mark the row under the cursor, or unmark it", on="dead", shown="spc", value=80),
    select("mark_page", "a", "mark page", "Mark every row that is loaded", on="dead", value=40),
    select("mark_all", "A", "mark all", "Mark all that match the filter, on the server too", on="dead", value=39),
    select("clear_marks", "u ctrl+backslash", "unmark", "Clear all marks", on="dead", value=25),

    view("filter", "slash", "filter", "Narrow the list by words, and by fields such as queue:a",
         on="queues jobs runs dead workers", shown="/", value=70, words="filter", argument="WORDS", by_screen=(
             ("queues", "Narrow the list by words: name, paused, idle, trouble"),
             ("jobs", "Narrow the list: queue:a type:b state:c"),
             ("runs", "Narrow the list: queue:a type:b state:c worker:d job:1 words"),
             ("dead", "Narrow the list: queue:a type:b reason:c fp:d is:any words"),
             ("workers", "Narrow the list by words: pool, host, queue, id, state"),
         )),
    view("find_queue", "slash", "find queue", "Go to the queues that a word is about", on="dash", shown="/", value=70),
    view("sort", "greater_than_sign", "sort", "Sort the queues by the next column", on="dash queues", action="sort(1)",
         shown=">", value=28),
    view("sort_back", "less_than_sign", "sort back", "Sort the queues by the column before", on="dash queues",
         action="sort(-1)", shown="<"),
    view("turn_order", "I", "turn order", "Turn the order of the queues round", on="dash queues"),
    view("older", "right_square_bracket", "older", "The next page", on="jobs dead", action="page(1)", shown="]",
         value=30),
    view("newer", "left_square_bracket", "newer", "The page before", on="jobs dead", action="page(-1)", shown="[",
         value=29),
    view("groups", "V", "groups", "Dead letters by kind of failure, or one by one", on="dead", action="toggle_groups",
         value=75, words="groups"),
    view("fold", "o", "unfold", "Show the library frames of the traceback, or fold them", on="dead",
         action="toggle_fold", value=35),
    view("narrower", "left_curly_bracket", "shorter window", "A shorter time window, down to 1 minute", on="dash",
         action="window(-1)", shown="{"),
    view("wider", "right_curly_bracket", "longer window", "A longer time window, up to 7 days", on="dash",
         action="window(1)", shown="}"),
    view("follow", "f", "follow", "Keep to the newest line, or stay here", on="runs", value=80),
    view("hold", "space", "pause", "Hold the lines still; what comes is counted", on="runs", shown="spc", value=79),
    view("level", "L", "level", "All runs, or only those that did not succeed", on="runs", value=60),
    view("find", "ampersand", "find", "Look for words in the lines that are loaded", on="runs", shown="&", value=50),
    view("next_hit", "n", "next", "The next line that was found", on="runs", action="hit(1)", value=20),
    view("previous_hit", "N", "previous", "The line found before", on="runs", action="hit(-1)"),
    view("times", "t", "times", "Times of the lines: local, UTC, relative, none", on="runs", value=40),
    view("marker", "m", "marker", "Draw a line to find this place again", on="runs", value=30),

    go("open", "enter", "open", "To what the selected row is about: a queue, the workers, a place with trouble",
       on="dash", value=88),
    go("open_queue", "enter", "jobs", "Jobs of the selected queue", on="queues", action="open", value=88),
    go("open_detail", "enter", "detail", "To the detail of the selected row; pressed there, the whole of it",
       on="jobs dead workers", action="open", value=88),
    go("open_run", "enter", "open", "Error, traceback and result of the selected run, and all runs of its job",
       on="runs", action="open", value=88),
    go("trouble", "exclamation_mark", "trouble", "To what needs attention; enter goes on to its place", on="dash",
       shown="!", value=72, words="trouble"),
    go("log", "l", "log", "The last lines the selected worker wrote", on="workers", value=80),
    go("queue_dead", "d", "dead", "Dead letters of the selected queue", on="queues", value=60),
    go("queue_runs", "o", "runs", "Runs of the selected queue", on="queues", value=59),
    go("next_pane", "tab", "pane", "The next pane", value=15),
    go("previous_pane", "shift+tab", "pane before", "The pane before", shown="S-tab"),
    *(
        go(f"screen_{screen.id}", str(screen.number), "", f"Screen {screen.number}: {screen.title}",
           action=f"screen('{screen.id}')", words=screen.id)
        for screen in SCREENS
    ),
    go("back", "escape", "back", "Close what is open, clear the filter, go back", shown="esc"),
    go("last_screen", "backspace", "last screen", "The screen before this one", action="app.last_screen", shown="bksp"),

    app("command_line", "colon", "command", "Type a command", shown=":", value=50),
    app("palette", "ctrl+p", "palette", "Find and run any command", action="app.command_palette", shown="^p", value=12),
    app("help", "question_mark f1", "help", "All keys of this screen", shown="?", value=98, words="help"),
    app("refresh", "r ctrl+r", "refresh", "Look again now", action="refresh_now", value=10, words="refresh"),
    app("freeze", "P", "freeze", "Hold the picture of this screen still", value=9, words="freeze"),
    app("slower", "left_parenthesis", "slower", "Refresh less often", action="rate(1)", shown="("),
    app("faster", "right_parenthesis", "faster", "Refresh more often", action="rate(-1)", shown=")"),
    app("copy", "y", "copy", "Copy the selected row in full to the clipboard", value=11),
    app("journal", "at", "journal", "What was done in this session, and what became of it", action="app.journal",
        shown="@", words="journal"),
    app("zone", "T", "time zone", "Times of day in UTC, or local", action="app.zone", words="zone"),
    app("header", "ctrl+e", "header", "Hide the two lines at the top", action="toggle_header", shown="^e"),
    app("theme", "", "theme", "Choose the colours", action="app.theme", words="theme", argument="NAME"),
    app("address", "", "url", "Copy the address of the database", action="app.address", words="url"),
    app("quit", "q", "quit", "Leave; running workers are asked about", action="app.leave", value=97, words="q quit"),
    app("quit_now", "ctrl+q", "quit", "Leave; pressed twice, leave at once", action="app.leave", shown="^q"),
    app("interrupt", "ctrl+c", "copy or quit", "Copy the selected text, else leave", shown="^c"),
)  # fmt: skip
