"""One embedded PostgreSQL server: found or started, used under a lease, stopped by whoever leaves last."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import platformdirs
import psycopg

from pgq_core.bounded import BoundedConnection
from pgq_core.embedded.account import choose_account, current_quarters
from pgq_core.embedded.binaries import find_binaries
from pgq_core.embedded.cluster import DATABASE, USER, Cluster, remove_socket_directory
from pgq_core.embedded.errors import EmbeddedServerFailed, EmbeddedServerUnavailable
from pgq_core.embedded.keeper import kept_alive
from pgq_core.embedded.locks import Leases, exclusive
from pgq_core.embedded.postmaster import Postmaster
from pgq_core.embedded.status import ServerStatus

READY_SECONDS = 300.0
# The last leaver's own connections need a moment to be gone from the server's view.
LEAVE_SECONDS = 1.0
CONNECT_SECONDS = 5
# Whoever leaves does not wait for a server that hangs; libpq knows no shorter time.
LAST_CONNECT_SECONDS = 2


class EmbeddedServer:
    """The server called `name` below `home` (default: `PGQ_HOME`, else the user's data directory).

    Every process that uses the same name and home shares one server. It runs detached, so it outlives each of them; it
    is stopped by `stop()`, or when the last `lease()` ends and no other client is connected. One that dies is started
    again by those that hold a lease. `settings` are PostgreSQL's own and count from the next start on.
    """

    def __init__(
        self, name: str = "main", home: Path | None = None, *, settings: Mapping[str, str] | None = None
    ) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,30}", name):
            raise ValueError(f"{name!r} cannot name a server: use lower case letters, digits, - and _")
        self.name = name
        self._directory = (home or default_home()).resolve() / name
        self._settings = dict(settings or {})
        self._leases = Leases(self._directory / "users")

    def start(self) -> str:
        """Find the running server or start it, and let it run until `stop()`, whoever leaves it.

        Answers its URL over the unix socket (over TCP where the socket is gone).
        """
        with self._gate():
            url = self._start_inside_gate()
            postmaster = self._living_postmaster()
            if postmaster is not None:
                self._kept_mark.write_text(postmaster.name)
            return url

    @contextlib.contextmanager
    def lease(self, *, on_silence: Callable[[str], None] | None = None) -> Iterator[str]:
        """Use the server for as long as the block runs; a process that dies gives its lease back by dying.

        A server that dies meanwhile comes back under the same URL; one that was ended by `stop()` stays away.
        The lease belongs to this process: a child that goes on alone takes its own. `on_silence` is told in a
        sentence when nobody else uses the server at the end and it does not answer: it is left as it is.
        """
        with self._gate():
            lease = self._leases.take()
            try:
                url = self._start_inside_gate()
            except BaseException:
                lease.release()
                raise
        try:
            with kept_alive(self._is_down, self._revive):
                yield url
        finally:
            lease.release()
            silent = self._stop_when_unused()
            if silent is not None and on_silence is not None:
                on_silence(f"the embedded server (process {silent.pid}) does not answer and was left as it is")

    def stop(self) -> None:
        """Stop the server now, whoever uses it, until somebody starts it; no error when it does not run."""
        with self._gate():
            self._stop_mark.touch(mode=0o600)
            self._kept_mark.unlink(missing_ok=True)
            self._stop_inside_gate()

    def status(self) -> ServerStatus:
        """One look, which starts and changes nothing."""
        postmaster = self._living_postmaster()
        url = self._reachable_url()
        return ServerStatus(
            running=postmaster is not None,
            url=url,
            version=_server_version(url) if url else None,
            pid=postmaster.pid if postmaster else None,
            data_directory=self._data_directory,
            users=self._leases.holders(),
            tcp_url=self._tcp_url(postmaster) if postmaster else None,
        )

    def _is_down(self) -> bool:
        """Whether it died; one whose files were removed did not, nor did one that was stopped on purpose."""
        return self._living_postmaster() is None and self._data_directory.is_dir() and not self._stop_mark.exists()

    def _revive(self, is_wanted: Callable[[], bool]) -> None:
        """All holders of a lease come here at once: the first one starts it, the others find it."""
        with self._gate():
            if is_wanted() and self._is_down():
                self._start_inside_gate()

    def _start_inside_gate(self) -> str:
        self._stop_mark.unlink(missing_ok=True)
        url = self._reachable_url()
        if url is not None:
            return url
        if self._living_postmaster() is None:
            self._cluster().start()
        return self._wait_until_reachable()

    def _wait_until_reachable(self) -> str:
        """The server may still recover, started by a process that was killed; or its database may have been dropped."""
        deadline = time.monotonic() + READY_SECONDS
        while (postmaster := self._living_postmaster()) is not None and time.monotonic() < deadline:
            url = self._reachable_url()
            if url is not None:
                return url
            if postmaster.socket_directory and _database_is_missing(postmaster):
                self._cluster().create_database(postmaster.socket_directory, postmaster.port)
            else:
                time.sleep(0.02)
        raise EmbeddedServerFailed("does not answer", log=self._data_directory.with_name("server.log"))

    def _stop_inside_gate(self) -> None:
        postmaster = self._living_postmaster()
        if postmaster is not None:
            postmaster.stop()
            remove_socket_directory(self._data_directory.with_name("socket"))

    def _stop_when_unused(self) -> Postmaster | None:
        """The last leaver stops the server, unless somebody without a lease, such as psql, is still connected.

        Answers the server when it is there but does not answer.
        """
        deadline = time.monotonic() + LEAVE_SECONDS
        while True:
            with self._gate():
                self._leases.forget_the_dead()
                postmaster = None if self._leases.holders() else self._living_postmaster()
                if postmaster is None or self._is_kept(postmaster):
                    return None
                url = None if postmaster.is_frozen else self._reachable_url(LAST_CONNECT_SECONDS)
                if url is None:
                    return self._living_postmaster()
                if not _has_other_clients(url):
                    self._stop_inside_gate()
                    return None
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)

    @property
    def _data_directory(self) -> Path:
        return current_quarters(self._directory) / "data"

    @property
    def _stop_mark(self) -> Path:
        """There from a stop on purpose to the next start."""
        return self._directory / "stopped"

    @property
    def _kept_mark(self) -> Path:
        """Names the process that somebody started to stay."""
        return self._directory / "kept"

    def _is_kept(self, postmaster: Postmaster) -> bool:
        try:
            return self._kept_mark.read_text() == postmaster.name
        except OSError:
            return False

    def _gate(self) -> contextlib.AbstractContextManager[None]:
        """What one process at a time may hold: starting, stopping, coming and leaving all happen inside."""
        lock = self._directory / "lock"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._refuse_the_directory_of_another_user()
            lock.touch(mode=0o600)
        except OSError as error:
            raise EmbeddedServerUnavailable(f"{self._directory} cannot be written: {error.strerror}") from error
        return exclusive(lock)

    def _refuse_the_directory_of_another_user(self) -> None:
        """Under sudo, files of root among the user's would lock the user out of the own server later."""
        owner = self._directory.stat().st_uid
        if owner != os.geteuid():
            raise EmbeddedServerUnavailable(f"{self._directory} belongs to user {owner}: run as that user")

    def _cluster(self) -> Cluster:
        binaries = find_binaries()
        account = choose_account(self._directory)
        return Cluster(account, account.reachable(binaries), self._settings)

    def _living_postmaster(self) -> Postmaster | None:
        postmaster = Postmaster.read(self._data_directory)
        return postmaster if postmaster and postmaster.is_alive else None

    def _reachable_url(self, patience: int = CONNECT_SECONDS) -> str | None:
        """The URL under which the server answers now. An answer over the socket is proof: only it can be there."""
        deadline = time.monotonic() + patience
        postmaster = Postmaster.read(self._data_directory)
        if postmaster is None:
            return None
        socket_url = _socket_url(postmaster)
        if socket_url and _server_version(socket_url, patience):
            return socket_url
        # One that was silent there is silent here, too.
        tcp_url = self._tcp_url(postmaster) if time.monotonic() < deadline else None
        if tcp_url and postmaster.is_alive and _server_version(tcp_url, patience):
            return tcp_url
        return None

    def _tcp_url(self, postmaster: Postmaster) -> str | None:
        try:
            password = self._data_directory.with_name("password").read_text()
        except FileNotFoundError:
            return None
        return f"postgresql://{USER}:{quote(password)}@127.0.0.1:{postmaster.port}/{DATABASE}?sslmode=disable"


def default_home() -> Path:
    """`PGQ_HOME`, else where programs of this user keep their data."""
    chosen = os.environ.get("PGQ_HOME")
    return Path(chosen).expanduser() if chosen else platformdirs.user_data_path("pgq-tui", appauthor=False)


def _socket_url(postmaster: Postmaster) -> str | None:
    if postmaster.socket_directory is None:
        return None
    return f"postgresql://{USER}@/{DATABASE}?host={quote(str(postmaster.socket_directory))}&port={postmaster.port}"


def _server_version(url: str, patience: int = CONNECT_SECONDS) -> str | None:
    """The version of the server that answers there; None when none does."""
    try:
        with psycopg.connect(url, connect_timeout=patience, application_name="pgq-tui server") as connection:
            major, minor = divmod(connection.info.server_version, 10_000)
            return f"{major}.{minor}"
    except psycopg.OperationalError:
        return None


def _database_is_missing(postmaster: Postmaster) -> bool:
    try:
        psycopg.connect(_socket_url(postmaster) or "", connect_timeout=CONNECT_SECONDS).close()
    except psycopg.OperationalError as error:
        return f'database "{DATABASE}" does not exist' in str(error)
    return False


def _has_other_clients(url: str) -> bool:
    statement = files("pgq_core").joinpath("sql/embedded/count_other_clients.sql").read_bytes()
    try:
        with BoundedConnection.connect(
            url, connect_timeout=CONNECT_SECONDS, application_name="pgq-tui server", answer_within=CONNECT_SECONDS
        ) as connection:
            row = connection.execute(statement).fetchone()
            return row is not None and row[0] > 0
    except psycopg.OperationalError:
        return False  # It went down between the last look and this one.
