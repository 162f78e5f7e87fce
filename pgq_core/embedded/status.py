"""What can be said about the embedded server from outside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One look at the server.

    `url` goes over the unix socket, which only this user can reach, and holds no password. `tcp_url` is for programs
    that cannot use a socket; it holds the password and therefore stays out of the repr. `users` are the process ids
    that hold a lease.
    """

    running: bool
    url: str | None
    version: str | None
    pid: int | None
    data_directory: Path
    users: tuple[int, ...]
    tcp_url: str | None = field(default=None, repr=False)
