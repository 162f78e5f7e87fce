"""A real terminal: a shell on a pseudo-terminal, the program in it, and what it did to the modes of both."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import psutil
import pyte

from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0
_MODE = re.compile(rb"\x1b\[\?([\d;]+)([hl])")
_PROMPT = "ready> "
MOUSE = (1000, 1002, 1003, 1006, 1015)


class Terminal:
    """80 by 24 unless told otherwise. Everything written to it is kept, and drawn on a screen of its own."""

    def __init__(self, *, columns: int = 80, lines: int = 24, **environment: str) -> None:
        env = {**os.environ, "TERM": "xterm-256color", "PS1": _PROMPT, "LC_ALL": "C.UTF-8", **environment}
        env.pop("NO_COLOR", None)
        self.raw = b""
        self.screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.shell: Any = pexpect.spawn(
            "/bin/bash",
            ["--norc", "--noprofile", "-i"],
            dimensions=(lines, columns),
            env=env,
            cwd=str(ROOT),
            timeout=PATIENCE,
        )
        self.shell.setecho(True)
        self.wait(lambda: _PROMPT.strip() in self.text)

    def close(self) -> None:
        for child in self.programs():
            child.kill()
        self.shell.close(force=True)

    @property
    def text(self) -> str:
        self._read()
        return "\n".join(self.screen.display)

    def wait(self, condition: Callable[[], Any], *, timeout: float = PATIENCE) -> Any:
        try:
            return eventually(condition, timeout=timeout, interval=0.05)
        except AssertionError:
            raise AssertionError(f"not seen within {timeout:g} s:\n{self.text}") from None

    def wait_for(self, *words: str, timeout: float = PATIENCE) -> None:
        self.wait(lambda: all(word in self.text for word in words), timeout=timeout)

    def type(self, text: str) -> None:
        self.shell.send(text)

    def run(self, *command: str, suffix: str = "; echo left=$?") -> None:
        """Start a program in the foreground of the shell."""
        self.type(shlex.join(command) + suffix + "\n")

    def run_console(self, *arguments: str) -> None:
        self.run(sys.executable, "-m", "tests.console.program", *arguments)

    def programs(self) -> list[psutil.Process]:
        """What runs in this terminal."""
        try:
            return psutil.Process(self.shell.pid).children()
        except psutil.NoSuchProcess:
            return []

    def program(self) -> psutil.Process:
        found = self.wait(self.programs)
        return found[0]

    def left(self) -> int:
        """The exit code that the shell saw."""
        found = self.wait(lambda: re.search(r"left=(\d+)", self.text))
        return int(found[1])

    def stty(self) -> str:
        """The settings of the line, as the shell's user would ask for them."""
        mark = len(self.raw)
        self.type("stty -a; echo stty-$((1 + 1))\n")
        self.wait(lambda: b"stty-2" in self._since(mark))
        answer = self._since(mark).decode(errors="replace")
        return answer[answer.index("speed") : answer.index("stty-2")]

    def modes(self) -> dict[int, bool]:
        """Private modes of the terminal, as they were last switched."""
        self._read()
        found: dict[int, bool] = {}
        for numbers, switch in _MODE.findall(self.raw):
            for number in numbers.split(b";"):
                found[int(number)] = switch == b"h"
        return found

    def is_sane(self) -> bool:
        """Main screen, visible cursor, no mouse reports, no bracketed paste left behind by a program."""
        modes = self.modes()
        return not modes.get(1049) and modes.get(25, True) and not any(modes.get(mode) for mode in MOUSE)

    def _since(self, mark: int) -> bytes:
        self._read()
        return self.raw[mark:]

    def _read(self) -> None:
        while True:
            try:
                data = self.shell.read_nonblocking(65536, timeout=0)
            except (pexpect.TIMEOUT, pexpect.EOF):
                return
            self.raw += data
            self._stream.feed(data)
