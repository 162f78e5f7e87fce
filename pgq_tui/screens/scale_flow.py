"""One worker more or less in a pool, from whichever screen shows it."""

from __future__ import annotations

from abc import abstractmethod

from textual import work

from pgq_core.domain.snapshot import PoolView
from pgq_tui.screens.console_screen import ConsoleScreen
from pgq_tui.screens.journal import Outcome
from pgq_tui.screens.verbs import outcome_of, wanted_words
from pgq_tui.view_model.chrome import Confirmation
from pgq_tui.view_model.palette import Token


class ScaleFlow(ConsoleScreen):
    """For screens with a pool under the cursor."""

    @abstractmethod
    def selected_pool(self) -> PoolView | None:
        """The pool a key is about."""

    @work(group="acts", exit_on_error=False)
    async def action_scale(self, change: int) -> None:
        pool = self.selected_pool()
        if pool is None:
            self.say("no pool is selected here", Token.RETRY)
            return
        if pool.wanted + change == 0 and not await self._may_empty(pool):
            return

        async def scale() -> Outcome:
            result = await self.session.backend.scale_by(pool.host, pool.name, change)
            words = wanted_words(self.session.overview, pool.host, pool.name, pool.wanted + change)
            return outcome_of(result, words)

        await self.perform(f"{'+' if change > 0 else '-'}1 {pool.name}", scale)

    async def _may_empty(self, pool: PoolView) -> bool:
        """The last worker of a pool is asked about: nothing would work its queues any more."""
        effect = f"Pool {pool.name} on {pool.host} will have no worker: {', '.join(pool.queues)} stand still there."
        return await self.confirm(Confirmation("Scale to 0", effect, "scale to 0"), "minus")
