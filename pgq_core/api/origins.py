"""Which names this server may be called by, and whose pages may send requests to it."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit

from pgq_core.api.settings import ApiSettings

ANY: Final = "*"
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "::1")
_ALL_ADDRESSES: Final = ("0.0.0.0", "::", "")  # noqa: S104 - not bound here, but left out of the list of names
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origins:
    """A page of another site, and a name that somebody else's DNS points here, get nowhere."""

    names: frozenset[str]
    trusted: frozenset[str]

    @classmethod
    def of(cls, settings: ApiSettings) -> Origins:
        names = [*_LOOPBACK_NAMES, *settings.hosts, socket.gethostname()]
        if settings.host not in _ALL_ADDRESSES:
            names.append(settings.host)
        return cls(frozenset(name.lower() for name in names), frozenset(_normal(settings.origins)))

    def knows_host(self, host: str | None) -> bool:
        """By name; any port will do, since proxies and containers map them."""
        if host is None:
            return False
        name = _split(f"//{host}").hostname
        return name is not None and (name in self.names or ANY in self.names)

    def may_send(self, *, host: str, origin: str | None, fetch_site: str | None) -> bool:
        """Whether a request that changes something may come from there. Programs send neither header."""
        if origin is None:
            return fetch_site in (None, "same-origin", "none")
        return origin.lower() in self.trusted or _is_same_place(origin, host)


def _is_same_place(origin: str, host: str) -> bool:
    there = _split(origin)
    here = _split(f"{there.scheme}://{host}")
    if there.hostname is None or there.scheme not in _PORTS:
        return False
    return there.hostname == here.hostname and _port(there) == _port(here)


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.hostname
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts


def _normal(origins: Iterable[str]) -> Iterable[str]:
    return (origin.rstrip("/").lower() for origin in origins)
