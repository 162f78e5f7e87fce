"""What was given under a name that is no setting: a slip of the pen counts for nothing, and nobody says so."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator

from pgq_core.api.settings import ApiSettings
from pgq_core.cli.checkup import Finding, Verdict
from pgq_core.settings import Settings, config_file, names_of, read_config_file

_OTHERS = ("PGQ_HOME", "PGQ_TEST_DSN", "PGQ_APP", "PGQ_APP_DIR")
"""Variables that are read, by the embedded server, the tests and the compose file, and are no settings."""
_OF_OURS = ("PGQ_BENCH_", "PGQ_RUNNER_")
"""Between our own processes."""


def unknown_settings() -> Iterator[Finding]:
    """One finding per variable `PGQ_...` and per key of the file that nobody reads."""
    known = {name.upper() for field in Settings.model_fields for name in names_of(field)}
    known |= {f"PGQ_API_{field.upper()}" for field in ApiSettings.model_fields} | {"PGQ_UNKNOWN_TYPES", *_OTHERS}
    for variable in sorted(os.environ):
        name = variable.upper()
        if name.startswith("PGQ_") and not name.startswith(_OF_OURS) and name not in known:
            yield _finding(variable, "the environment", known)
    keys = {name for field in Settings.model_fields for name in (field, *names_of(field))} | {"api"}
    file = read_config_file()
    yield from (_finding(key, str(config_file()), keys) for key in sorted(file.keys() - keys))
    api = file.get("api")
    if isinstance(api, dict):
        fields = set(ApiSettings.model_fields)
        yield from (_finding(f"api.{key}", str(config_file()), fields) for key in sorted(api.keys() - fields))


def _finding(name: str, where: str, known: Iterable[str]) -> Finding:
    near = difflib.get_close_matches(name.rpartition(".")[2].upper(), [one.upper() for one in known], n=1)
    by_upper = {one.upper(): one for one in known}
    hint = f"did you mean {by_upper[near[0]]}?" if near else "it counts for nothing"
    return Finding("settings", Verdict.WARN, f"{name} in {where} is no setting", hint)
