"""Where each setting came from: flag, environment, file or default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from psycopg.conninfo import conninfo_to_dict, make_conninfo
from pydantic import AliasChoices

from pgq_core.settings import Settings, config_file


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    name: str
    value: str
    source: str


def setting_origins(settings: Settings, flags: Mapping[str, object]) -> list[SettingOrigin]:
    """One line per setting; passwords are not shown."""
    environment = {name.upper(): name for name in os.environ}
    file = _file_values()
    return [
        SettingOrigin(name, _shown(name, getattr(settings, name)), _source(name, flags, environment, file))
        for name in Settings.model_fields
    ]


def _source(name: str, flags: Mapping[str, object], environment: Mapping[str, str], file: Mapping[str, Any]) -> str:
    if flags.get(name) is not None:
        return "flag"
    names = _names(name)
    for candidate in names:
        if candidate.upper() in environment:
            return f"environment {environment[candidate.upper()]}"
    if any(candidate in file for candidate in names):
        return str(config_file())
    return "default"


def _names(name: str) -> list[str]:
    """All names under which a setting may be given, in the order in which they count."""
    alias = Settings.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [f"PGQ_{name.upper()}", name]


def _file_values() -> Mapping[str, Any]:
    try:
        return tomllib.loads(config_file().read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def _shown(name: str, value: object) -> str:
    if value is None:
        return "-"
    if name == "dsn":
        return without_password(str(value))
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def without_password(dsn: str) -> str:
    given = conninfo_to_dict(dsn)
    if "password" in given:
        given["password"] = "***"  # noqa: S105  # that is the point
    return make_conninfo("", **given)
