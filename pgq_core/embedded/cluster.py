"""The files of one server, made once and started again and again: data directory, settings, password, sockets."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pgq_core.embedded.account import Account
from pgq_core.embedded.binaries import Binaries
from pgq_core.embedded.errors import EmbeddedServerFailed, OlderDataDirectory
from pgq_core.embedded.postmaster import cluster_name, remove_stale_pid_file

USER = DATABASE = "pgq"
SETTINGS = {
    "shared_buffers": "128MB",
    "max_connections": "200",
    "listen_addresses": "127.0.0.1",
    "unix_socket_permissions": "0700",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
}
# A socket path is at most 103 bytes on macOS and 107 on Linux.
SOCKET_PATH_LIMIT = 103
CLOSED_TO = stat.S_IRWXG | stat.S_IRWXO
UNFINISHED = "data.new-"
LOG_LIMIT = 16 * 1024 * 1024

# Failures that pass: another program took the port just now, or children of a killed server still hold its memory.
STOLEN_PORT = ("Address already in use", "could not create any TCP/IP sockets")
LEFTOVERS = ("is still in use", "Is another postmaster")
START_TRIES = 25
START_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Cluster:
    """Everything that a stopped server needs to start. Call its verbs under the server's gate only."""

    account: Account
    binaries: Binaries
    settings: Mapping[str, str]

    @property
    def data_directory(self) -> Path:
        return self.account.quarters / "data"

    @property
    def log(self) -> Path:
        return self.account.quarters / "server.log"

    def start(self) -> None:
        """Make the files where they are missing and start the server, detached from this process."""
        self._refuse_another_major_version()
        self._remove_unfinished()
        if not self.data_directory.exists():
            self._initialise()
        remove_stale_pid_file(self.data_directory)
        self._keep_log_small()
        self._start_patiently()

    def create_database(self, socket_directory: Path, port: int) -> None:
        """Make the database that everybody uses. PostgreSQL's own program does it: no statement to keep here."""
        command = (self.binaries.program("createdb"), "-h", str(socket_directory), "-p", str(port), "-U", USER)
        made = self.account.run(*command, "--maintenance-db=postgres", DATABASE)
        if made.returncode != 0 and "already exists" not in made.stdout:
            raise EmbeddedServerFailed(f"cannot create database {DATABASE}", last_words=made.stdout.strip())

    def _refuse_another_major_version(self) -> None:
        version_file = self.data_directory / "PG_VERSION"
        found = version_file.read_text().strip() if version_file.exists() else self.binaries.major
        if found != self.binaries.major:
            raise OlderDataDirectory(self.data_directory, found=found, wanted=self.binaries.major)

    def _initialise(self) -> None:
        """Make the data directory beside its place and move it there when whole: a killed start leaves no half one."""
        unfinished = self.account.quarters / f"{UNFINISHED}{secrets.token_hex(4)}"
        self._write_password()
        made = self.account.run(
            self.binaries.program("initdb"),
            f"--pgdata={unfinished}",
            f"--username={USER}",
            f"--pwfile={self.account.quarters / 'password'}",
            "--auth-local=trust",  # The socket directory is closed to everybody else.
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            *(["--no-sync"] if self.settings.get("fsync") == "off" else []),
            timeout=300,
        )
        if made.returncode != 0:
            raise EmbeddedServerFailed("cannot make its data directory", last_words=_tail(made.stdout))
        with (unfinished / "postgresql.conf").open("a") as configuration:
            configuration.write("\ninclude_if_exists 'pgq.conf'\n")
        unfinished.rename(self.data_directory)

    def _remove_unfinished(self) -> None:
        """What killed starts left. As much as goes: the initdb of one killed just now may still be writing there."""
        for left in self.account.quarters.glob(f"{UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)

    def _write_password(self) -> None:
        path = self.account.quarters / "password"
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(24))
        self.account.own(path)

    def _configure(self, port: int) -> None:
        (self.account.quarters / "port").write_text(str(port))
        values = SETTINGS | dict(self.settings)
        values |= {"port": str(port), "unix_socket_directories": _quoted(str(self._socket_directory()), '"')}
        path = self.data_directory / "pgq.conf"
        lines = (f"{name} = {_setting(value)}\n" for name, value in values.items())
        path.write_text(
            "# Written at every start; put own settings into postgresql.auto.conf (ALTER SYSTEM).\n" + "".join(lines)
        )
        self.account.own(path)

    def _socket_directory(self) -> Path:
        """An empty directory only for this server's user, with a path that a socket can have and a client can name.

        After a crash it is the same as before: open programs look for the server where it was.
        """
        usual = self.account.quarters / "socket"
        if self._is_own_short_directory(usual):
            for left in usual.iterdir():
                left.unlink()
            return usual.readlink()
        remove_socket_directory(usual)
        if len(os.fsencode(usual / ".s.PGSQL.65535")) <= SOCKET_PATH_LIMIT and "," not in str(usual):
            usual.mkdir(mode=0o700)
            return self.account.own(usual)
        short = Path(tempfile.mkdtemp(prefix="pgq-", dir="/tmp"))  # mkdtemp: a new one of mode 0700
        usual.symlink_to(short)
        return self.account.own(short)

    def _is_own_short_directory(self, usual: Path) -> bool:
        """Beside everybody's files, so it has to be proven: still a directory, still closed to others."""
        try:
            found = usual.readlink().lstat()
        except OSError:
            return False
        owner = self.account.user.pw_uid if self.account.user else os.geteuid()
        return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & CLOSED_TO

    def _last_port(self) -> int | None:
        """The port of the last run, so that addresses given to other programs stay good, unless somebody has it now."""
        try:
            port = int((self.account.quarters / "port").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return port if _is_free(port) else None

    def _start_patiently(self) -> None:
        port = self._last_port()
        for _ in range(START_TRIES):
            self._configure(port or free_port())
            words = self._try_to_start()
            if words is None:
                return
            if any(sign in words for sign in STOLEN_PORT):
                port = None
            elif any(sign in words for sign in LEFTOVERS):
                time.sleep(0.2)
            else:
                raise EmbeddedServerFailed("does not start", log=self.log, last_words=words)
        raise EmbeddedServerFailed(f"does not start after {START_TRIES} tries", log=self.log)

    def _try_to_start(self) -> str | None:
        """Start and wait until the server is ready; what it said when it was not."""
        spoken = self.log.stat().st_size if self.log.exists() else 0
        started = self.account.run(
            self.binaries.program("pg_ctl"),
            "start",
            "--wait",
            f"--timeout={START_SECONDS}",
            # pg_ctl hands these to a shell without quoting them well: names only, relative to the quarters.
            f"--pgdata={self.data_directory.name}",
            f"--log={self.log.name}",
            f"--options=-c cluster_name={cluster_name(self.data_directory)}",
            timeout=START_SECONDS + 30,
        )
        if started.returncode == 0:
            return None
        if not self.log.exists():
            return _tail(started.stdout)
        with self.log.open(errors="replace") as log:
            log.seek(spoken)
            return _tail(log.read()) or _tail(started.stdout)

    def _keep_log_small(self) -> None:
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))


def remove_socket_directory(usual: Path) -> None:
    """Remove the sockets of a server that no longer runs: the usual directory, or the short one that it points to."""
    if usual.is_symlink():
        shutil.rmtree(usual.readlink(), ignore_errors=True)
        usual.unlink()
    elif usual.exists():
        shutil.rmtree(usual)


def free_port() -> int:
    """A loopback port that nobody uses right now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def _setting(value: str) -> str:
    return _quoted(value.replace("\\", r"\\"), "'")


def _quoted(text: str, quote: str) -> str:
    return quote + text.replace(quote, quote * 2) + quote


def _tail(text: str, lines: int = 8) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
