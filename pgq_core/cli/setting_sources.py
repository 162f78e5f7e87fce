"""Where each setting came from: flag, environment, file or default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgq_core.settings import Settings, read_config_file, source_of


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    name: str
    value: str
    source: str


def setting_origins(settings: Settings, flags: Mapping[str, object]) -> list[SettingOrigin]:
    """One line per setting; passwords are not shown."""
    file = read_config_file()
    return [
        SettingOrigin(name, _shown(name, getattr(settings, name)), source_of(name, flags, file))
        for name in Settings.model_fields
    ]


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
