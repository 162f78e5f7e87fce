"""One pool's seats and who sits in them: decides whom to start and whom to drain. No I/O, no clock of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pgq_core.worker.backoff import RestartBackoff
from pgq_core.worker.exits import ExitKind, RunnerExit

HEALTHY_AFTER = 10.0
"""Seconds after which a worker that is ready has proven itself."""
LONGEST_PAUSE = 30.0
LONGEST_PAUSE_ONCE_READY = 3.0
"""A job killed it. Killing jobs end as dead letters, so its seat need not wait for what is long over: with the start of
a successor it is filled within 5 s."""

_BLAMELESS = frozenset((ExitKind.STOPPED, ExitKind.REPLACE))


@dataclass(frozen=True, slots=True)
class Member:
    """A worker that this supervisor started. `seat` remembers the deaths before it."""

    worker_id: str
    started_at: float
    seat: RestartBackoff
    ready_at: float | None = None
    is_leaving: bool = False


@dataclass(frozen=True, slots=True)
class Vacancy:
    """A seat whose worker died and that stays empty until `retry_at`."""

    seat: RestartBackoff
    retry_at: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do now, and when to look again although nothing has happened."""

    start: int = 0
    drain: tuple[str, ...] = ()
    look_again_at: float | None = None


@dataclass(frozen=True, slots=True)
class PoolHealth:
    """How the pool does: `retry_at` the next try while a seat waits, `detail` the last death in words."""

    state: str = "ok"
    detail: str | None = None
    retry_at: float | None = None
    restarts: int = 0


def new_seat() -> RestartBackoff:
    return RestartBackoff(base=0.5, cap=LONGEST_PAUSE, healthy_after=HEALTHY_AFTER, crash_loop_after=3)


@dataclass(slots=True)
class Pool:
    """Fed with what happens (`started`, `became_ready`, `asked_to_leave`, `exited`), asked for a `plan`.

    Times are any clock that only goes forward, given by the caller.
    """

    new_seat: Callable[[], RestartBackoff] = new_seat
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
        seat = self._take_seat(now)
        self.restarts += seat.deaths > 0
        self.members[worker_id] = Member(worker_id, now, seat)

    def failed_to_start(self, now: float, cause: str) -> None:
        """There is no process at all: the program, its directory or its rights are missing."""
        ended = RunnerExit(ExitKind.REFUSED, code=None, signal=None, reason=cause, last_output=(), lived=0.0)
        self._vacate(self._take_seat(now), ended, now, longest=LONGEST_PAUSE)

    def became_ready(self, worker_id: str, now: float) -> None:
        self.members[worker_id] = replace(self.members[worker_id], ready_at=now)

    def asked_to_leave(self, worker_id: str) -> None:
        """Its seat is free for another from here on, and its exit no failure. Not for one that drains by itself: why it
        did so is known at its exit.
        """
        self.members[worker_id] = replace(self.members[worker_id], is_leaving=True)

    def exited(self, worker_id: str, now: float, ended: RunnerExit) -> bool:
        """Whether this exit was a death that nobody had asked for."""
        member = self.members.pop(worker_id)
        if member.is_leaving or ended.kind in _BLAMELESS:
            return False
        # Only the time after it was ready counts as life: a start that hangs and fails is not healthy for hanging long.
        lived = 0.0 if member.ready_at is None else now - member.ready_at
        longest = LONGEST_PAUSE if member.ready_at is None else LONGEST_PAUSE_ONCE_READY
        self._vacate(member.seat, replace(ended, kind=ExitKind.CRASHED, lived=lived), now, longest=longest)
        return True

    def retry_now(self) -> None:
        """An operator does not want to wait for the next try."""
        self.vacancies = [replace(vacancy, retry_at=float("-inf")) for vacancy in self.vacancies]

    def health(self, now: float) -> PoolHealth:
        """A crash loop lasts until the seats with too many deaths in a row are filled by workers that stay healthy."""
        for member in self.members.values():
            if member.ready_at is not None and now - member.ready_at >= HEALTHY_AFTER:
                member.seat.healthy()
        seats = [vacancy.seat for vacancy in self.vacancies]
        seats += [member.seat for member in self.members.values() if not member.is_leaving]
        worst = max(seats, key=_deaths, default=None)
        if worst is None or not worst.is_crash_loop:
            return PoolHealth(restarts=self.restarts)
        return PoolHealth(
            state="crash_loop",
            detail=f"{worst.deaths} times in a row: {self.last_death}",
            retry_at=min((vacancy.retry_at for vacancy in self.vacancies), default=None),
            restarts=self.restarts,
        )

    def _take_seat(self, now: float) -> RestartBackoff:
        """The ripest empty seat, or a new one."""
        ripest = min(self.vacancies, key=_retry_at, default=None)
        if ripest is None or ripest.retry_at > now:
            return self.new_seat()
        self.vacancies.remove(ripest)
        return ripest.seat

    def _vacate(self, seat: RestartBackoff, ended: RunnerExit, now: float, *, longest: float) -> None:
        self.last_death = _in_words(ended)
        self.vacancies.append(Vacancy(seat, now + min(seat.delay_after(ended), longest)))


def _retry_at(vacancy: Vacancy) -> float:
    return vacancy.retry_at


def _deaths(seat: RestartBackoff) -> int:
    return seat.deaths


def _in_words(ended: RunnerExit) -> str:
    """The reason, and the last thing the worker said before."""
    said = next((words for line in reversed(ended.last_output) if (words := _words_of(line))), "")
    return f"{ended.reason} ({said[:200]})" if said and said not in ended.reason else ended.reason


def _words_of(line: str) -> str:
    """What a line says about a death. Of log records only trouble of the worker itself does: jobs come and go."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line.strip()
    if not isinstance(record, dict) or "event" not in record:
        return line.strip()
    if record.get("level") in {"debug", "info"} or str(record["event"]).startswith("job_"):
        return ""
    return ": ".join(str(record[key]) for key in ("event", "error") if record.get(key))


def _most_dispensable(staying: list[Member], surplus: int, busy: Mapping[str, int]) -> tuple[str, ...]:
    """The idle-most, and of equally idle ones the youngest."""
    ordered = sorted(staying, key=lambda member: (busy.get(member.worker_id, 0), -member.started_at))
    return tuple(member.worker_id for member in ordered[: max(surplus, 0)])
