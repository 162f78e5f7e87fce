"""Settings of the HTTP API: flag > environment (`PGQ_API_*`) > table `[api]` of the TOML file > default."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from pgq_core.domain.payload import MAX_BYTES
from pgq_core.errors import InvalidSettings
from pgq_core.settings import read_config_file

Names = Annotated[tuple[str, ...], NoDecode]


class ApiSettings(BaseSettings):
    """Each field is `PGQ_API_<NAME>` in the environment and `<name>` in the table `[api]` of the settings file."""

    model_config = SettingsConfigDict(env_prefix="PGQ_API_", extra="ignore", populate_by_name=True)

    host: str = Field("127.0.0.1", min_length=1)
    """Address to listen on. On loopback no token is asked for."""
    port: int = Field(8080, ge=0, le=65535)
    """0: any free one."""
    hosts: Names = ()
    """Further names that clients may call this server by (the Host header); `*` for any."""
    origins: Names = ()
    """Further origins whose pages may send requests here, such as `https://ops.example.org`."""
    proxies: Names = ()
    """Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed."""
    require_tokens: bool = False
    """Ask for tokens on loopback, too."""
    open_metrics: bool = False
    """Serve /metrics without a token."""
    timeout: float = Field(4.0, gt=0, le=60)
    """Longest wait in seconds for the database before a request is answered by 503."""
    bulk_timeout: float = Field(120.0, gt=0, le=3600)
    """The same for replaying or discarding many."""
    max_body: int = Field(MAX_BYTES, ge=1024, le=64 * MAX_BYTES)
    """Longest request body in bytes."""
    rate: float | None = Field(None, ge=0)
    """Requests per second of one client (its address), with bursts of two seconds' worth; 0: no limit. None: 200, and
    no limit on loopback."""
    unknown_types: Literal["refuse", "accept"] = Field(
        "refuse", validation_alias=AliasChoices("unknown_types", "PGQ_API_UNKNOWN_TYPES", "PGQ_UNKNOWN_TYPES")
    )
    """What to do with a job of a type that no worker ever announced, once any was."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, InitSettingsSource(settings_cls, init_kwargs=_table())

    @field_validator("hosts", "origins", "proxies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @model_validator(mode="after")
    def _any_name_needs_tokens(self) -> ApiSettings:
        if "*" in self.hosts and not self.asks_for_tokens:
            raise ValueError("hosts = * without tokens would let any web page in: name the hosts, or ask for tokens")
        return self

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def asks_for_tokens(self) -> bool:
        return self.require_tokens or not self.is_loopback

    @property
    def requests_per_second(self) -> float:
        """0: no limit."""
        if self.rate is not None:
            return self.rate
        return 0.0 if self.is_loopback else 200.0


def load_api_settings(**flags: object) -> ApiSettings:
    """Settings from all sources; a flag that is None or empty counts as not given. Raises InvalidSettings."""
    given = {name: value for name, value in flags.items() if value not in (None, [], ())}
    try:
        return ApiSettings(**given)  # type: ignore[arg-type]  # validated by pydantic
    except ValidationError as error:
        lines = (
            f"api.{'.'.join(str(part) for part in e['loc'])}: {e['msg'].removeprefix('Value error, ')}"
            for e in error.errors()
        )
        raise InvalidSettings("; ".join(lines)) from error


def is_loopback(host: str) -> bool:
    """
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _table() -> dict[str, Any]:
    table = read_config_file().get("api", {})
    return table if isinstance(table, dict) else {}
