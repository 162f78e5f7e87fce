"""Everything about one worker or one pool as a detail."""

from __future__ import annotations

from datetime import datetime, tzinfo

from pgq_core.domain.snapshot import Overview, PoolView, WorkerView
from pgq_tui.view_model.detail import Detail, Fact, Section, TextSection
from pgq_tui.view_model.figures import format_bytes, format_exact, format_percent, load_words, plural
from pgq_tui.view_model.fleet import exit_words, pool_state, short_worker_name, worker_state
from pgq_tui.view_model.glyphs import UNICODE, Glyphs
from pgq_tui.view_model.loop_health import loops_fact, loops_section, stalled_words
from pgq_tui.view_model.palette import Palette, Token
from pgq_tui.view_model.status import status_text
from pgq_tui.view_model.times import MISSING, format_age, format_span, format_stamp, format_until


def worker_detail(
    worker: WorkerView,
    now: datetime,
    palette: Palette,
    *,
    output: str | None = None,
    zone: tzinfo | None = None,
    glyphs: Glyphs = UNICODE,
) -> Detail:
    """One process: what it does, what it costs, how it ended, what it wrote last."""
    state = worker_state(worker)
    share = worker.failed / worker.runs if worker.runs else None
    facts = [
        Fact("state", status_text("ok" if state == "running" else state, palette, glyphs=glyphs, label=state)),
        Fact("pool", f"{worker.pool or '(none)'} on {worker.host}"),
        Fact("process", f"pid {worker.pid or MISSING}, version {worker.version or MISSING}"),
        Fact("queues", ", ".join(worker.queues)),
        Fact(
            "running",
            load_words(worker.running, worker.concurrency),
            Token.RUNNING if worker.running else Token.DIM,
        ),
        Fact("runs", f"{format_exact(worker.runs)}, {format_percent(share)} of them failed"),
        Fact("cost", f"cpu {_cpu(worker.cpu_percent)}  memory {format_bytes(worker.rss_bytes)}"),
        Fact("started", f"{format_stamp(worker.started_at, zone)}, {format_age(now - worker.started_at)}"),
    ]
    if worker.stopped_at is None:
        token = Token.FAILED if worker.is_stale else Token.TEXT
        facts.append(Fact("heartbeat", format_age(now - worker.heartbeat_at), token))
        if worker.loops:
            facts.append(loops_fact(worker.loops))
    else:
        facts.append(Fact("ended", f"{format_stamp(worker.stopped_at, zone)}, {format_age(now - worker.stopped_at)}"))
        token = Token.FAILED if state in {"crashed", "lost"} else Token.TEXT
        facts.append(Fact("exit", worker.exit_reason or exit_words(worker) or "no reason known", token))
    if worker.late_writes:
        facts.append(Fact("refused", f"{worker.late_writes} late writes of jobs it had lost", Token.RETRY))
    sections: list[Section] = []
    if worker.stalled_loops:
        sections.append(loops_section(worker.loops, palette, glyphs))
    if worker.job_types:
        sections.append(TextSection("job types it knows", ", ".join(worker.job_types)))
    if output:
        sections.append(TextSection("last output", output, Token.DIM))
    if worker.loops and not worker.stalled_loops:
        sections.append(loops_section(worker.loops, palette, glyphs))
    return Detail(f"worker {worker.id}", tuple(facts), tuple(sections))


def pool_detail(
    pool: PoolView,
    view: Overview,
    palette: Palette,
    *,
    ended: WorkerView | None = None,
    output: str | None = None,
    zone: tzinfo | None = None,
    glyphs: Glyphs = UNICODE,
) -> Detail:
    """One pool: the number wanted, the number there is, who keeps it, and what the last one to end wrote."""
    now = view.taken_at
    word, words = pool_state(pool, now)
    facts = [
        Fact("state", status_text(word, palette, glyphs=glyphs, label=words)),
        *_trouble(pool, now),
        Fact("host", pool.host),
        Fact("queues", ", ".join(pool.queues)),
        Fact("wanted", f"{plural(pool.wanted, 'worker')} of {plural(pool.concurrency, 'slot')}"),
        Fact("allowed", f"{pool.minimum} to {pool.maximum} workers"),
        Fact("alive", f"{pool.alive}, {pool.draining} of them draining"),
        Fact("restarts", str(pool.restarts), Token.RETRY if pool.restarts else Token.DIM),
    ]
    facts.append(_supervisor(pool, view, now, zone))
    sections: tuple[Section, ...] = ()
    if ended is not None and output:
        words = f"last output of {short_worker_name(ended)}, {exit_words(ended) or 'ended'}"
        sections = (TextSection(words, output, Token.DIM),)
    return Detail(f"pool {pool.name}", tuple(facts), sections)


def _trouble(pool: PoolView, now: datetime) -> list[Fact]:
    """Why it is not as it should be, and what comes next."""
    facts = []
    if pool.state_detail:
        facts.append(Fact("because", pool.state_detail, Token.FAILED))
    if pool.retry_at:
        facts.append(Fact("next try", format_until((pool.retry_at - now).total_seconds()), Token.RETRY))
    return facts


def _supervisor(pool: PoolView, view: Overview, now: datetime, zone: tzinfo | None) -> Fact:
    found = next((one for one in view.supervisors if one.host == pool.host), None)
    if found is None:
        return Fact("supervisor", f"none on {pool.host}: start pgq-tui supervise there", Token.FAILED)
    if found.is_stale:
        return Fact("supervisor", f"pid {found.pid}, silent for {format_span(now - found.heartbeat_at)}", Token.FAILED)
    if found.stalled_loops:
        stalled = ", ".join(stalled_words(loop) for loop in found.stalled_loops)
        return Fact("supervisor", f"pid {found.pid}, {stalled}", Token.FAILED)
    return Fact("supervisor", f"pid {found.pid}, since {format_stamp(found.started_at, zone)}")


def _cpu(percent: float | None) -> str:
    return MISSING if percent is None else f"{percent:.0f}%"
