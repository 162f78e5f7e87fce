"""Programs whose wall clock a test sets; needs a C compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("skew.c")


class Skew:
    """`environment`: of a program that shall live by this clock."""

    def __init__(self, directory: Path) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("no C compiler")
        library, self._file = directory / "skew.so", directory / "skew"
        made = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"],
            check=False,
            capture_output=True,
            text=True,
        )
        if made.returncode != 0:
            pytest.skip(f"no clock can be set here: {made.stderr.strip()[-200:]}")
        self._file.write_text("0")
        self._file.chmod(0o644)
        library.chmod(0o755)
        self.environment = {"LD_PRELOAD": str(library), "SKEW_FILE": str(self._file)}

    def set(self, seconds: int) -> None:
        """Ahead of the true time, or, with a minus, behind it."""
        self._file.write_text(str(seconds))
