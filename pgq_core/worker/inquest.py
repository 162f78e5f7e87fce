"""What a runner's end means: its exit code or signal, read by what it said and what its keeper had in mind."""

from __future__ import annotations

import signal

from pgq_core.worker.exits import ExitKind, RunnerExit, signal_name
from pgq_core.worker.handle import Intent, RunnerHandle, RunnerState
from pgq_core.worker.protocol import RunnerExitCode

_POLITE = frozenset((-signal.SIGTERM, -signal.SIGINT))


def exit_of(handle: RunnerHandle, code: int) -> RunnerExit:
    """`code` as subprocess tells it: negative for a signal."""
    kind = _kind(handle, code)
    died_by = signal_name(-code) if code < 0 else None
    return RunnerExit(
        kind=kind,
        code=code if code >= 0 else None,
        signal=died_by,
        reason=_reason(handle, kind, code, died_by),
        last_output=handle.recent_output,
        lived=handle.lived,
    )


def _kind(handle: RunnerHandle, code: int) -> ExitKind:
    match handle.intent:
        case Intent.DRAIN | Intent.STOP:
            return ExitKind.STOPPED
        case Intent.FENCE | Intent.OVERDUE:
            return ExitKind.REPLACE
    if handle.is_refused:
        return ExitKind.REFUSED
    # A runner that leaves on its own account says so first; a job may end the process with any exit code, 0 included.
    if code in {RunnerExitCode.FENCED, RunnerExitCode.STUCK} and handle.leaving:
        return ExitKind.REPLACE
    if code == RunnerExitCode.DONE and handle.is_finished:
        return ExitKind.FINISHED
    if code == RunnerExitCode.DONE and handle.state is RunnerState.DRAINING:
        # A signal to the runner alone, perhaps by a job: who means the worker asks its keeper.
        return ExitKind.REPLACE
    if code in _POLITE and handle.state is RunnerState.STARTING:
        return ExitKind.STOPPED  # asked to leave from outside, while it was still importing its application
    return ExitKind.CRASHED


def _reason(handle: RunnerHandle, kind: ExitKind, code: int, died_by: str | None) -> str:
    how = f"by {died_by}" if died_by is not None else f"with exit code {code}"
    match kind:
        case ExitKind.STOPPED:
            reason = handle.intent_reason or handle.leaving or "asked to stop from outside"
            return f"{reason}, killed after its grace" if died_by == "SIGKILL" else reason
        case ExitKind.FINISHED:
            return "nothing was left to do"
        case ExitKind.REPLACE:
            return handle.intent_reason or handle.leaving or f"left {how}"
        case ExitKind.REFUSED:
            return handle.leaving
        case ExitKind.CRASHED:
            return handle.leaving if code == RunnerExitCode.SPOILED and handle.leaving else f"died {how}"
