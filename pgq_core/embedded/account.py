"""As whom the server runs: as the caller or, since PostgreSQL refuses to run as root, as somebody with fewer rights."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from pgq_core.embedded import enter_namespace
from pgq_core.embedded.binaries import Binaries
from pgq_core.embedded.errors import EmbeddedServerFailed, EmbeddedServerUnavailable

OWN_USER = "pgq-tui"
# Root's home is closed to every other user, so what runs as an own user lives here.
OWN_USER_HOME = Path("/var/lib/pgq-tui")


@dataclass(frozen=True, slots=True)
class Account:
    """Who runs the server's programs, and the directory (`quarters`) that holds what they read and write."""

    quarters: Path
    prefix: tuple[str, ...] = ()
    user: pwd.struct_passwd | None = None

    def run(self, *command: str, timeout: float = 60.0) -> subprocess.CompletedProcess[str]:
        """Run one program to its end. Its output is merged; a signal to the caller's terminal does not reach it."""
        try:
            return subprocess.run(
                [*self.prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=timeout,
                check=False,
                cwd=self.quarters,
                env=_clean_environment(),
                start_new_session=True,
                user=self.user.pw_uid if self.user else None,
                group=self.user.pw_gid if self.user else None,
                extra_groups=[] if self.user else None,
            )
        except subprocess.TimeoutExpired as error:
            raise EmbeddedServerFailed(f"waited {timeout:.0f} s for {Path(command[0]).name} in vain") from error

    def own(self, path: Path) -> Path:
        """Hand over a path that this package has just made."""
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path

    def reachable(self, binaries: Binaries) -> Binaries:
        """The programs where this account can run them: where they are, or else a copy."""
        if self.user is None or self._can_run(binaries):
            return binaries
        copy = replace(binaries, directory=OWN_USER_HOME / f"postgresql-{binaries.version}")
        if not copy.directory.is_dir():
            unfinished = copy.directory.with_suffix(f".{os.getpid()}")
            shutil.copytree(binaries.directory, unfinished, ignore=shutil.ignore_patterns("include"), symlinks=True)
            unfinished.rename(copy.directory)
        return copy

    def _can_run(self, binaries: Binaries) -> bool:
        try:
            return self.run(binaries.program("postgres"), "--version").returncode == 0
        except PermissionError:
            return False


def current_quarters(directory: Path) -> Path:
    """Where the server of `directory` lives now, if it was ever started."""
    separate = _separate_quarters(directory)
    return separate if os.geteuid() == 0 and separate.is_dir() else directory


def choose_account(directory: Path) -> Account:
    """Decide who runs the server of `directory`: the caller; for root a namespace, else an own user."""
    if os.geteuid() != 0:
        return Account(directory)
    if not _separate_quarters(directory).is_dir() and namespaces_are_allowed():
        return Account(directory, prefix=(sys.executable, "-I", "-S", enter_namespace.__file__))
    if (directory / "data").exists():
        raise EmbeddedServerUnavailable(
            f"{directory / 'data'} was made in a user namespace, and the system no longer allows root to enter one"
        )
    return _own_user_account(_separate_quarters(directory))


def namespaces_are_allowed() -> bool:
    """Whether this system lets root enter a user namespace; containers often do not."""
    if sys.platform != "linux":
        return False
    entry = [sys.executable, "-I", "-S", enter_namespace.__file__, sys.executable, "-I", "-S", "-c", ""]
    return subprocess.run(entry, capture_output=True, check=False, timeout=30).returncode == 0


def _own_user_account(quarters: Path) -> Account:
    user = _find_or_make_own_user()
    OWN_USER_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
    quarters.mkdir(mode=0o700, exist_ok=True)
    account = Account(quarters, user=user)
    account.own(quarters)
    return account


def _find_or_make_own_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(OWN_USER)
    except KeyError:
        _make_own_user()
    return pwd.getpwnam(OWN_USER)


def _make_own_user() -> None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        raise EmbeddedServerUnavailable(
            "PostgreSQL does not run as root, this system allows no user namespace, and there is no useradd; "
            "run as an ordinary user"
        )
    made = subprocess.run(
        [useradd, "--system", "--user-group", "--no-create-home", "--home-dir", str(OWN_USER_HOME), OWN_USER],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if made.returncode != 0:
        raise EmbeddedServerUnavailable(f"no user {OWN_USER} could be made to run it as: {made.stderr.strip()}")


def _separate_quarters(directory: Path) -> Path:
    digest = hashlib.sha256(os.fsencode(directory)).hexdigest()[:12]
    return OWN_USER_HOME / f"{directory.name}-{digest}"


def _clean_environment() -> dict[str, str]:
    """Without the caller's PG* settings, which would steer our server, and with messages in English."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return inherited | {"LC_ALL": "C"}
