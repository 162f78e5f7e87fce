"""Closed runs as lines of a live tail."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from pgq_core.domain.snapshot import RunView
from pgq_tui.view_model.figures import format_id
from pgq_tui.view_model.fleet import short_worker_id
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line
from pgq_tui.view_model.status import status_look
from pgq_tui.view_model.tail_record import TailOptions, time_text
from pgq_tui.view_model.times import format_duration

_TYPE_WIDTH = 24
_TYPE_WIDTH_NARROW = 23
_JOB_WIDTH = 8
_TOOK_WIDTH = 6
_WORKER_WIDTH = 16
_NARROW = 100
_LONGEST_ERROR = 2_000
_LOUD = frozenset({"failed", "dead", "retry"})


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One closed run."""

    run: RunView

    @property
    def key(self) -> int:
        return self.run.id

    @property
    def level(self) -> str:
        return self.run.outcome

    @property
    def search_text(self) -> str:
        run = self.run
        return f"{run.job_type or ''} {run.queue or ''} {run.job_id} {run.worker_id} {run.outcome} {run.error or ''}"

    def render(self, width: int, options: TailOptions) -> Text:
        """When, how, what, which job, how long, which attempt, and the error or who did it."""
        run, palette, glyphs = self.run, options.palette, options.glyphs
        is_wide = width >= _NARROW
        look = status_look(run.outcome, glyphs)
        type_width = _TYPE_WIDTH if is_wide else _TYPE_WIDTH_NARROW
        line = time_text(run.finished_at, options)
        line.append(f"{look.icon} {run.outcome:<9} " if is_wide else f"{look.icon} ", palette.style(look.token))
        line.append(one_line(run.job_type or "", type_width, glyphs=glyphs).ljust(type_width + 1))
        line.append(f"{format_id(run.job_id):>{_JOB_WIDTH}} ", palette.style(Token.LINK))
        took = format_duration(run.duration) if run.attempt else ""
        line.append(f"{took:>{_TOOK_WIDTH}} ", palette.style(Token.DIM))
        line.append(f"{f'#{run.attempt}' if run.attempt else '':<3} ", palette.style(Token.DIM))
        if is_wide:
            line.append(one_line(short_worker_id(run.worker_id), _WORKER_WIDTH, glyphs=glyphs).ljust(_WORKER_WIDTH + 1))
        words = run.error or ("" if is_wide or look.kind == "ok" else run.outcome)
        style = palette.style(look.token if look.kind in _LOUD else Token.DIM)
        line.append(one_line(words, _LONGEST_ERROR, glyphs=glyphs), style)
        return line
