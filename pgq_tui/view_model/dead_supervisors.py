"""A picture of the fleet without supervisors that the database has not yet missed."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from pgq_core.domain.snapshot import Overview


def without_supervisors(view: Overview, dead: AbstractSet[str]) -> Overview:
    """Those of `dead` are stale from now on, and nobody keeps the pools of their hosts."""
    hosts = {one.host for one in view.supervisors if one.supervisor_id in dead}
    if not hosts:
        return view
    supervisors = tuple(replace(one, is_stale=one.is_stale or one.host in hosts) for one in view.supervisors)
    pools = tuple(replace(pool, has_supervisor=pool.has_supervisor and pool.host not in hosts) for pool in view.pools)
    return replace(view, supervisors=supervisors, pools=pools)
