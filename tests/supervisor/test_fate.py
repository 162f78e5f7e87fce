"""Whether a supervisor died or left is known at once, not after the stale limit."""

from __future__ import annotations

from pgq_tui.supervisor import Fate, fate_of
from tests.supervisor.support import HOST, Host


async def test_who_was_killed_died_and_who_was_asked_left(host: Host) -> None:
    async def fate(supervisor_id: str) -> Fate:
        return await fate_of(host.dsn, "pgq_core", HOST, supervisor_id, state_dir=host.state_dir)

    first = host.supervise()
    assert await fate(first.info.supervisor_id) is Fate.LIVES
    first.process.kill()
    host.until_stopped(first)
    assert await fate(first.info.supervisor_id) is Fate.DIED

    second = host.supervise()
    assert await fate(second.info.supervisor_id) is Fate.LIVES
    second.ask_to_stop()
    host.until_stopped(second)
    assert await fate(second.info.supervisor_id) is Fate.LEFT
