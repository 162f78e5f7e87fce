"""What this host may execute: its pools, read from the host's own file and from nowhere else."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pgq_core.domain.job import JSON
from pgq_core.errors import InvalidSettings
from pgq_tui.supervisor.errors import PoolsFileMissing

QueueName = Annotated[str, Field(min_length=1, max_length=200)]
PoolName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")]

FIELDS = "app, queues, concurrency, wanted, minimum, maximum, cwd, env, grace"


class PoolDefinition(BaseModel):
    """One pool: a number of equal workers. `wanted` is where it starts; from then on the database's number counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: PoolName
    app: str = Field(min_length=1)
    """What `pgq-core worker --app` takes: `module`, `module:registry` or `path/file.py`."""
    queues: tuple[QueueName, ...] = Field(default=("default",), min_length=1)
    concurrency: int = Field(default=10, ge=1, le=10_000)
    wanted: int = Field(default=1, ge=0)
    minimum: int = Field(default=0, ge=0)
    maximum: int = Field(default=64, ge=0, le=1_000)
    cwd: Path | None = None
    env: dict[str, str] = Field(default_factory=dict)
    grace: float | None = Field(default=None, ge=0, le=86_400)
    """Seconds that a stopping worker has to finish what runs. None: the setting of the same name."""

    @field_validator("env", mode="before")
    @classmethod
    def _env_of_scalars(cls, value: object) -> object:
        """`PORT = 25` in TOML is a number, an environment knows only text."""
        if not isinstance(value, Mapping):
            return value
        return {name: str(item) if isinstance(item, int | float) else item for name, item in value.items()}

    @model_validator(mode="after")
    def _numbers_fit(self) -> PoolDefinition:
        if not self.minimum <= self.wanted <= self.maximum:
            raise ValueError(
                f"wanted ({self.wanted}) must lie between minimum ({self.minimum}) and maximum ({self.maximum})"
            )
        return self

    def clamped(self, wanted: int) -> int:
        """The number that this host allows: the limits of its file hold, whatever the table says."""
        return min(max(wanted, self.minimum), self.maximum)


def default_pools_file() -> Path:
    return Path(platformdirs.user_config_dir("pgq-tui")) / "pools.toml"


def load_pools(path: Path) -> tuple[PoolDefinition, ...]:
    """The pools of `path`, in its order. Raises PoolsFileMissing, or InvalidSettings with every fault in one sentence.

    A relative `cwd` counts from the file's directory, `~` is the user's home.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise PoolsFileMissing(path) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(f"{path}: {error}") from error
    tables = document.get("pools")
    if set(document) - {"pools"} or not isinstance(tables, dict):
        raise InvalidSettings(f"{path}: expected only tables like [pools.NAME], each with {FIELDS}")
    return tuple(_definition(path, name, table) for name, table in tables.items())


def _definition(path: Path, name: str, table: JSON) -> PoolDefinition:
    if not isinstance(table, dict):
        raise InvalidSettings(f"{path}: pools.{name} must be a table with {FIELDS}")
    if "name" in table:
        raise InvalidSettings(f"{path}: pools.{name}.name: the name of a pool is the name of its table")
    try:
        pool = PoolDefinition.model_validate({**table, "name": name})
    except ValidationError as error:
        raise InvalidSettings("; ".join(_faults(path, name, error))) from error
    if pool.cwd is None:
        return pool
    return pool.model_copy(update={"cwd": (path.parent / pool.cwd.expanduser()).resolve()})


def _faults(path: Path, name: str, error: ValidationError) -> list[str]:
    return [
        f"{path}: pools.{'.'.join((name, *(str(part) for part in fault['loc'])))}: "
        f"{fault['msg'].removeprefix('Value error, ')}"
        for fault in error.errors()
    ]
