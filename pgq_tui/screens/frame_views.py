"""What the bars around a screen say at a moment, worked out from the session."""

from __future__ import annotations

from pgq_tui.command_list import SCREENS
from pgq_tui.screens.session import Session
from pgq_tui.view_model.chrome import HeaderView, Link, Tab
from pgq_tui.view_model.glyphs import Glyphs
from pgq_tui.view_model.headline import alert_tabs, counters
from pgq_tui.view_model.times import format_clock


def header_view(session: Session, glyphs: Glyphs) -> HeaderView:
    """Where we are connected, as what, and the numbers that matter everywhere."""
    overview = session.overview
    return HeaderView(
        context=session.context,
        database=session.backend.address,
        is_read_only=session.looks_only,
        ping_seconds=overview.server.ping if overview else None,
        is_connected=not session.link.is_outage,
        counters=counters(overview, glyphs) if overview else (),
        refresh_seconds=session.interval,
        now=session.now if overview else None,
        zone=session.zone,
    )


def screen_tabs(session: Session) -> tuple[Tab, ...]:
    """All screens, those with trouble marked."""
    return alert_tabs(tuple(Tab(one.id, one.number, one.label) for one in SCREENS), session.attention)


def shown_age(session: Session, link: Link, at: float) -> float | None:
    """The age that belongs to the state: of the outage, of the picture, of the waiting."""
    match link:
        case Link.LIVE:
            return None
        case Link.LOADING:
            return at - session.started_at
        case Link.LOST:
            since = session.link.failed_since
            return None if since is None else at - since
        case _:
            return session.link.age(at)


def shown_moment(session: Session, link: Link) -> str:
    """When the picture was taken, unless it is of now."""
    if link in {Link.LIVE, Link.LOADING} or session.overview is None:
        return ""
    return f"data from {format_clock(session.overview.taken_at, session.zone)}"
