"""The settings of a worker's processes, resolved and validated: a value that needs no pydantic to be carried about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Union

if TYPE_CHECKING:
    from pgq_core.settings import Settings

AnySettings: TypeAlias = Union["PlainSettings", "Settings"]


@dataclass(frozen=True, slots=True)
class PlainSettings:
    """Every field of `Settings`, which see. A keeper that imported pydantic only for this would be 15 MB larger."""

    dsn: str | None
    db_schema: str
    queues: tuple[str, ...]
    concurrency: int
    poll: float
    heartbeat: float
    stale_limit: float
    reaper_interval: float
    grace: float
    job_timeout: float
    max_attempts: int
    backoff_base: float
    backoff_cap: float
    answer_within: float
    key_window: float
    runs_kept: float
    resolved_dead_letters_kept: float
    unknown_type_after: float
    operator: str | None
    read_only: bool
    mask_keys: tuple[str, ...]
    log_format: Literal["json", "text"]
    log_level: Literal["debug", "info", "warning", "error"]
    log_jobs: Literal["auto", "all"]

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> PlainSettings:
        """Of what `dataclasses.asdict` said, read back from JSON, which knows no tuples."""
        lists = {name: tuple(values[name]) for name in ("queues", "mask_keys")}
        return cls(**{**values, **lists})


def plain(settings: AnySettings) -> PlainSettings:
    if isinstance(settings, PlainSettings):
        return settings
    return PlainSettings(**{name: getattr(settings, name) for name in PlainSettings.__slots__})
