"""`pgq-tui` as the tests start it; `CONSOLE_CRASHES` makes a fault of ours happen when the second picture arrives."""

from __future__ import annotations

import os
import threading

from pgq_tui.cli import main


def crash_soon(how: str) -> None:
    from pgq_tui.screens.dash import DashScreen

    show, seen = DashScreen.show_overview, []

    def broken(screen: DashScreen, overview: object) -> None:
        show(screen, overview)  # type: ignore[arg-type]  # handed on
        seen.append(overview)
        if len(seen) > 1:
            if how == "thread":
                threading.Thread(target=lambda: screen.app.call_from_thread(_raise)).start()
            else:
                _raise()

    DashScreen.show_overview = broken  # type: ignore[method-assign]  # that is the point


def _raise() -> None:
    secret = "postgresql://app:s3cret@db/jobs"  # noqa: F841 - a local that a traceback with locals would show
    raise RuntimeError("payload of a customer")


if __name__ == "__main__":
    if how := os.environ.get("CONSOLE_CRASHES"):
        crash_soon(how)
    main()
