"""Settings of every program: flag > environment > TOML file > default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import AliasChoices, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pgq_core.domain.masking import DEFAULT_MASK_KEYS
from pgq_core.errors import InvalidSettings

Seconds = Annotated[float, Field(ge=0, le=366 * 86400)]
Period = Annotated[float, Field(gt=0, le=86400)]


def config_file() -> Path:
    return Path(platformdirs.user_config_dir("pgq-tui")) / "config.toml"


class Settings(BaseSettings):
    """All durations in seconds. Each field is `PGQ_<NAME>` in the environment and `<name>` in the TOML file."""

    model_config = SettingsConfigDict(env_prefix="PGQ_", extra="ignore", populate_by_name=True)

    dsn: str | None = Field(None, validation_alias=AliasChoices("dsn", "DATABASE_URL", "PGQ_DSN"))
    """Address of the database. None: the embedded server."""
    db_schema: str = Field("pgq_core", min_length=1, validation_alias=AliasChoices("db_schema", "PGQ_SCHEMA", "schema"))
    queues: Annotated[tuple[str, ...], NoDecode] = Field(
        ("default",), validation_alias=AliasChoices("queues", "PGQ_QUEUE", "QUEUE", "queue")
    )
    """Queues a worker serves, comma separated."""
    concurrency: int = Field(10, ge=1, le=10_000)

    poll: Period = 0.5
    heartbeat: Period = 5.0
    stale_limit: Period = 30.0
    reaper_interval: Period = 5.0
    grace: Seconds = 30.0
    job_timeout: Seconds = 300.0
    """Longest run of one attempt where neither the row nor the handler says otherwise; 0 = none."""
    max_attempts: int = Field(5, ge=1, le=1_000_000)
    backoff_base: Period = 1.0
    backoff_cap: Period = 3600.0
    answer_within: Period = 60.0
    """How long a command waits for each answer of the database before it gives a silent server up."""
    key_window: Seconds = 86400.0
    runs_kept: Seconds = 7 * 86400.0
    resolved_dead_letters_kept: Seconds = 30 * 86400.0
    unknown_type_after: Seconds = 7 * 86400.0
    operator: str | None = None
    """Who the audit of operators' actions says it was. None: the OS user and this host."""
    read_only: bool = False
    """Refuse every command that changes something."""
    mask_keys: Annotated[tuple[str, ...], NoDecode] = DEFAULT_MASK_KEYS
    """Keys of payloads whose values are not shown, comma separated; see `domain.masking`."""
    log_format: Literal["json", "text"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_jobs: Literal["auto", "all"] = "auto"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, config_file())

    @model_validator(mode="before")
    @classmethod
    def _split_lists(cls, values: dict[str, object]) -> dict[str, object]:
        for name in ("queues", "PGQ_QUEUE", "QUEUE", "queue", "mask_keys"):
            if isinstance(given := values.get(name), str):
                values[name] = tuple(part.strip() for part in given.split(",") if part.strip())
        return values

    @field_validator("dsn")
    @classmethod
    def _is_an_address(cls, dsn: str | None) -> str | None:
        if dsn is not None:
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict

            try:
                conninfo_to_dict(dsn)
            except ProgrammingError:  # its words quote the address, and with it the password
                raise ValueError(
                    "is no address of a PostgreSQL server, such as postgresql://user:password@host:5432/database "
                    "(what is no letter or digit in the password is written as %XX)"
                ) from None
        return dsn

    @model_validator(mode="after")
    def _stale_limit_covers_three_beats(self) -> Settings:
        if self.stale_limit < 3 * self.heartbeat * (1 - 1e-9):  # 3 * 0.1 is a little more than 0.3
            raise ValueError(
                f"stale_limit ({self.stale_limit} s) must be at least three times heartbeat ({self.heartbeat} s), "
                "or healthy workers would be taken for dead"
            )
        return self

    @property
    def retention_of_runs(self) -> timedelta:
        return timedelta(seconds=self.runs_kept)


def load_settings(**flags: object) -> Settings:
    """Settings from all sources; a flag that is None counts as not given.

    Raises InvalidSettings, which names each fault and the file it may stand in.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    file = read_config_file()
    try:
        return Settings(**given)  # type: ignore[arg-type]  # validated by pydantic
    except ValidationError as error:
        raise InvalidSettings("; ".join(_fault(found, given, file) for found in error.errors())) from error


def read_config_file() -> Mapping[str, Any]:
    """What the TOML file says; nothing where there is none. Raises InvalidSettings when it cannot be read."""
    try:
        return tomllib.loads(config_file().read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise InvalidSettings(f"{config_file()}: {error}") from error


def source_of(name: str, flags: Mapping[str, object], file: Mapping[str, Any]) -> str:
    """Where a setting's value came from: `flag`, `environment PGQ_NAME`, the path of the file, or `default`."""
    if flags.get(name) is not None:
        return "flag"
    environment = {variable.upper(): variable for variable in os.environ}
    names = names_of(name)
    for candidate in names:
        if candidate.upper() in environment:
            return f"environment {environment[candidate.upper()]}"
    return str(config_file()) if any(candidate in file for candidate in names) else "default"


def names_of(name: str) -> list[str]:
    """All names under which a setting may be given, in the order in which they count."""
    alias = Settings.model_fields[name].validation_alias
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [f"PGQ_{name.upper()}", name]


def _fault(found: ErrorDetails, flags: Mapping[str, object], file: Mapping[str, Any]) -> str:
    words = found["msg"].removeprefix("Value error, ")
    given = [str(part) for part in found["loc"]]
    name = next((name for name in Settings.model_fields if given and given[0] in (name, *names_of(name))), None)
    if name is None:
        return f"{'.'.join(given) or 'settings'}: {words}"
    return f"{'.'.join((name, *given[1:]))}: {words} (from: {source_of(name, flags, file)})"
