"""One worker more or less in a pool, from whichever screen shows it."""

from __future__ import annotations

from abc import abstractmethod

from textual import work

from pgq_core.domain.snapshot import PoolView
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.verbs import outcome_of, wanted_words
from pgq_tui.view_model.chrome import Confirmation
from pgq_tui.view_model.fleet import find_pool, pool_key
from pgq_tui.view_model.palette import Token
from pgq_tui.view_model.safe_text import one_line

_LONGEST_NAME = 12
NO_POOLS = "no pool is defined: add one to pools.toml, pgq-tui supervise reads it"


class ScaleFlow(ConsoleScreen):
    """For screens with a pool under the cursor, or near it."""

    @abstractmethod
    def selected_pool(self) -> PoolView | None:
        """The pool a key is about."""

    def why_no_pool(self) -> str:
        """What to do where a key cannot know which pool is meant."""
        return "no pool is selected here"

    def _has_pools(self) -> bool:
        return self.session.overview is None or bool(self.session.overview.pools)

    def labels(self) -> dict[str, str]:
        pool = self.selected_pool()
        return (
            {**super().labels(), "scale_up": f"more {one_line(pool.name, _LONGEST_NAME)}"} if pool else super().labels()
        )

    @work(group="acts", exit_on_error=False)
    async def action_scale(self, change: int) -> None:
        pool = self.selected_pool()
        if pool is None:
            self.say(self.why_no_pool() if self._has_pools() else NO_POOLS, Token.RETRY)
            return
        # One after the other: each press says what it made of the press before.
        async with self.session.scaling:
            await self._scale(self._as_it_is_now(pool), change)

    async def _scale(self, pool: PoolView, change: int) -> None:
        wanted = pool.wanted + change
        if wanted == 0 and not await self._may_empty(pool):
            return

        async def scale() -> Outcome:
            result = await self.session.backend.scale_by(pool.host, pool.name, change)
            return outcome_of(result, wanted_words(self.session.overview, pool.host, pool.name, wanted))

        if await self.perform(f"{'+' if change > 0 else '-'}1 {pool.name}", scale):
            self.session.note_wanted(pool, wanted)

    def _as_it_is_now(self, pool: PoolView) -> PoolView:
        overview = self.session.overview
        return (find_pool(overview, pool_key(pool)) if overview else None) or pool

    async def _may_empty(self, pool: PoolView) -> bool:
        """The last worker of a pool is asked about: nothing would work its queues any more."""
        effect = f"Pool {pool.name} on {pool.host} will have no worker: {', '.join(pool.queues)} stand still there."
        return await self.confirm(Confirmation("Scale to 0", effect, "scale to 0"), "minus")
