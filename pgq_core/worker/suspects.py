"""When a worker runs a suspect: what ran while another worker died runs alone, so that it can be judged."""

from __future__ import annotations

from random import Random
from typing import Final

LOOK_EVERY: Final = 3.0
PATIENCE: Final = 60.0
"""Seconds that a busy worker claims nothing, to run itself empty for a suspect; then it goes back to work."""


class Suspects:
    """Decides; the producer acts."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._look_at = 0.0
        self._empties_until = 0.0
        self._claim_at = 0.0
        self._runs_alone = False

    def wants_to_look(self, now: float) -> bool:
        """Whether a busy worker should ask if a suspect waits."""
        return now >= self._look_at and not self._runs_alone

    def looked(self, *, is_waiting: bool, now: float) -> None:
        if self._empties_until and now > self._empties_until:
            self._empties_until = 0.0
            self._look_at = now + PATIENCE
            return
        self._look_at = now + LOOK_EVERY * self._random.uniform(0.7, 1.3)
        if is_waiting and not self._empties_until:
            self._empties_until = now + PATIENCE
        elif not is_waiting:
            self._empties_until = 0.0

    def holds_claims_back(self, is_idle: bool, now: float) -> bool:
        """Whether nothing else may be claimed now."""
        if is_idle:
            self._runs_alone = False
        return self._runs_alone or now < self._empties_until

    def may_run_now(self, is_idle: bool, now: float) -> bool:
        """Whether a suspect could be claimed: nothing else is in hand."""
        return is_idle and now >= self._claim_at

    def claimed(self, *, is_found: bool, now: float) -> None:
        self._runs_alone = is_found
        self._empties_until = 0.0
        self._claim_at = now if is_found else now + 0.1
