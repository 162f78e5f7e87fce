"""One pool's seats and who sits in them: decides whom to start and whom to drain. No I/O, no clock of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from pgq_tui.supervisor.restarts import RestartPolicy


@dataclass(frozen=True, slots=True)
class Member:
    """A worker that this supervisor started. `failures`: deaths in a row in its seat before it."""

    worker_id: str
    started_at: float
    failures: int = 0
    ready_at: float | None = None
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class Vacancy:
    """A seat whose worker died and that stays empty until `retry_at`."""

    failures: int
    retry_at: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, and when to look again although nothing has happened."""

    start: int = 0
    drain: tuple[str, ...] = ()
    look_again_at: float | None = None


@dataclass(frozen=True, slots=True)
class PoolHealth:
    """How the pool does: `retry_in` seconds until the next try while a seat waits, `detail` the last death in words."""

    state: str = "ok"
    detail: str | None = None
    retry_in: float | None = None
    restarts: int = 0


@dataclass(slots=True)
class Pool:
    """Fed with what happens (`started`, `became_ready`, `asked_to_leave`, `exited`), asked for a `plan`.

    Times are any clock that only goes forward, given by the caller.
    """

    policy: RestartPolicy = field(default_factory=RestartPolicy)
    random: Random = field(default_factory=Random)
    members: dict[str, Member] = field(default_factory=dict)
    vacancies: list[Vacancy] = field(default_factory=list)
    restarts: int = 0
    last_death: str | None = None

    def plan(self, now: float, *, wanted: int, foreign: int = 0, busy: Mapping[str, int] | None = None) -> Plan:
        """`foreign`: live workers of this pool on this host that somebody else started; they count, but are not ours to
        drain. `busy`: jobs that each member runs.
        """
        staying = [member for member in self.members.values() if not member.is_leaving]
        deficit = wanted - len(staying) - foreign
        # Seats that are no longer wanted are given up, the ones that wait longest first.
        self.vacancies = sorted(self.vacancies, key=_retry_at)[: max(deficit, 0)]
        waiting = [vacancy for vacancy in self.vacancies if vacancy.retry_at > now]
        return Plan(
            start=max(deficit - len(waiting), 0),
            drain=_most_dispensable(staying, len(staying) - wanted, busy or {}),
            look_again_at=min((vacancy.retry_at for vacancy in waiting), default=None),
        )

    def started(self, worker_id: str, now: float) -> None:
        """A start takes the ripest empty seat, and with it the memory of the deaths there."""
        failures = self._take_seat(now)
        self.restarts += failures > 0
        self.members[worker_id] = Member(worker_id, now, failures)

    def failed_to_start(self, now: float, cause: str) -> None:
        """There is no process at all: the program, its directory or its rights are missing."""
        self._vacate(self._take_seat(now) + 1, was_ready=False, now=now, cause=cause)

    def became_ready(self, worker_id: str, now: float) -> None:
        self.members[worker_id] = replace(self.members[worker_id], ready_at=now)

    def asked_to_leave(self, worker_id: str) -> None:
        """From here on its seat is free for another, and its exit is no failure."""
        self.members[worker_id] = replace(self.members[worker_id], is_leaving=True)

    def exited(self, worker_id: str, now: float, cause: str) -> bool:
        """Whether this exit was a death that nobody had asked for."""
        member = self.members.pop(worker_id)
        if member.is_leaving:
            return False
        failures = 1 if self._is_healthy(member, now) else member.failures + 1
        self._vacate(failures, was_ready=member.ready_at is not None, now=now, cause=cause)
        return True

    def health(self, now: float) -> PoolHealth:
        """A crash loop lasts until the seats with too many deaths in a row are filled by workers that stay healthy."""
        unproven = [m.failures for m in self.members.values() if not m.is_leaving and not self._is_healthy(m, now)]
        worst = max([vacancy.failures for vacancy in self.vacancies] + unproven, default=0)
        if worst < self.policy.crash_loop_after:
            return PoolHealth(restarts=self.restarts)
        next_try = min((vacancy.retry_at for vacancy in self.vacancies), default=None)
        return PoolHealth(
            state="crash_loop",
            detail=f"{worst} times in a row: {self.last_death}",
            retry_in=None if next_try is None else max(next_try - now, 0.0),
            restarts=self.restarts,
        )

    def _take_seat(self, now: float) -> int:
        """The deaths in a row of the ripest empty seat; 0 when the worker gets a new one."""
        seat = min(self.vacancies, key=_retry_at, default=None)
        if seat is None or seat.retry_at > now:
            return 0
        self.vacancies.remove(seat)
        return seat.failures

    def _vacate(self, failures: int, *, was_ready: bool, now: float, cause: str) -> None:
        self.last_death = cause
        delay = self.policy.delay(failures, was_ready=was_ready, random=self.random)
        self.vacancies.append(Vacancy(failures, now + delay))

    def _is_healthy(self, member: Member, now: float) -> bool:
        return member.ready_at is not None and now - member.ready_at >= self.policy.healthy_after


def _retry_at(vacancy: Vacancy) -> float:
    return vacancy.retry_at


def _most_dispensable(staying: list[Member], surplus: int, busy: Mapping[str, int]) -> tuple[str, ...]:
    """The idle-most, and of equally idle ones the youngest."""
    ordered = sorted(staying, key=lambda member: (busy.get(member.worker_id, 0), -member.started_at))
    return tuple(member.worker_id for member in ordered[: max(surplus, 0)])
