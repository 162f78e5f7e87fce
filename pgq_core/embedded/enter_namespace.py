"""Run a program as nobody, in a new user namespace, instead of as root: PostgreSQL refuses to run as root.

A script of its own, since only a process with a single thread may enter a user namespace. No id is mapped, so the
program has no rights over the system; files of the caller stay its own, which is all that a server needs.

    python -I -S enter_namespace.py PROGRAM [ARGUMENT ...]
"""

from __future__ import annotations

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000


def main(program: str, *arguments: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER) != 0:
        sys.exit(f"no user namespace: {os.strerror(ctypes.get_errno())}")
    os.execv(program, [program, *arguments])  # noqa: S606 - replacing this process is its whole purpose


if __name__ == "__main__":
    main(*sys.argv[1:])
