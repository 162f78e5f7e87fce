"""The pure parts of keeper and runner: decisions, counters, text."""

from __future__ import annotations

import os
import signal
import threading
from random import Random

import pytest

from pgq_core.domain.job import DeathReason, Outcome
from pgq_core.errors import InvalidSettings
from pgq_core.queries.orphans import OrphanRow
from pgq_core.worker.backoff import RestartBackoff
from pgq_core.worker.exits import ExitKind, RunnerExit
from pgq_core.worker.handle import RunnerHandle, RunnerState
from pgq_core.worker.inquest import exit_of
from pgq_core.worker.marks import Mark, Marks
from pgq_core.worker.output import LINES_PER_SECOND, MAX_LINE, LineSplitter
from pgq_core.worker.pace import MOST_AHEAD, Pace
from pgq_core.worker.protocol import Report, ReportKind, RunnerExitCode
from pgq_core.worker.rescue import MOST_SUSPECTS, Blame, Rescue, rescue_of
from pgq_core.worker.rotation import Rotation
from pgq_core.worker.spec import RunnerSpec, ServedQueue, served_queues
from pgq_core.worker.suspects import PATIENCE, Suspects


def orphan(job_id: int, *, attempts: int = 0, max_attempts: int = 5, suspect: bool = False) -> OrphanRow:
    return OrphanRow(job_id, 100 + job_id, "w", "default", "type", attempts, max_attempts, 0, suspect, None, None)


def rescued(blame: Blame, orphans: list[OrphanRow], *marks: Mark, monotonic_ns: int = 0) -> Rescue:
    return rescue_of(
        orphans, marks, blame=blame, words="worker died: SIGKILL", monotonic_ns=monotonic_ns, random=Random(1)
    )


def started(job_id: int, *, deadline_ns: int = 0) -> Mark:
    return Mark(job_id, deadline_ns, has_ended=False)


def test_only_started_job_of_a_dead_worker_is_charged() -> None:
    rescue = rescued(Blame.JOBS, [orphan(1), orphan(2)], started(1))

    (charged,) = rescue.rescheduled
    assert (charged.id, charged.charge, charged.suspect, charged.outcome) == (1, 1, True, Outcome.LOST)
    assert charged.error == "worker died: SIGKILL"
    assert rescue.released == [(2, 102)]


def test_last_attempt_of_a_killer_is_a_crash_loop() -> None:
    rescue = rescued(Blame.JOBS, [orphan(1, attempts=4)], started(1))

    (letter,) = rescue.buried
    assert (letter.reason, letter.charge, letter.error) == (DeathReason.CRASH_LOOP, 1, "worker died: SIGKILL")


def test_several_started_jobs_are_suspects_and_none_is_charged() -> None:
    rescue = rescued(Blame.JOBS, [orphan(1), orphan(2)], started(1), started(2))

    assert [(job.charge, job.suspect, job.delay) for job in rescue.rescheduled] == [(0, True, None)] * 2


def test_job_whose_handler_was_through_is_neither_charged_nor_suspected() -> None:
    rescue = rescued(Blame.JOBS, [orphan(1), orphan(2)], Mark(1, 0, has_ended=True), started(2))

    by_id = {job.id: job for job in rescue.rescheduled}
    assert (by_id[1].charge, by_id[1].suspect) == (0, False)
    assert (by_id[2].charge, by_id[2].suspect) == (1, True)


def test_the_few_that_were_through_when_nothing_ran_are_suspects() -> None:
    few, many = [orphan(number) for number in range(2)], [orphan(number) for number in range(MOST_SUSPECTS + 1)]

    def suspects(orphans: list[OrphanRow]) -> set[tuple[int, bool]]:
        rescue = rescued(Blame.JOBS, orphans, *(Mark(row.id, 0, has_ended=True) for row in orphans))
        return {(job.charge, job.suspect) for job in rescue.rescheduled}

    assert suspects(few) == {(0, True)}
    assert suspects(many) == {(0, False)}, "each would run alone"


def test_who_kills_its_worker_on_its_way_out_alone_is_charged() -> None:
    rescue = rescued(Blame.JOBS, [orphan(1, suspect=True)], Mark(1, 0, has_ended=True))

    (charged,) = rescue.rescheduled
    assert (charged.charge, charged.suspect) == (1, True)


def test_jobs_of_a_stopped_worker_go_back_unspent() -> None:
    rescue = rescued(Blame.NOBODY, [orphan(1), orphan(2, suspect=True)], started(1), started(2))

    assert [(job.outcome, job.charge, job.suspect) for job in rescue.rescheduled] == [
        (Outcome.RELEASED, 0, False),
        (Outcome.RELEASED, 0, True),
    ]


def test_only_the_overdue_job_pays_for_a_killed_worker() -> None:
    marks = (started(1, deadline_ns=50), started(2, deadline_ns=500), started(3))

    rescue = rescued(Blame.OVERDUE, [orphan(1), orphan(2), orphan(3)], *marks, monotonic_ns=100)

    by_id = {job.id: (job.outcome, job.charge) for job in rescue.rescheduled}
    assert by_id == {1: (Outcome.RETRIED, 1), 2: (Outcome.RELEASED, 0), 3: (Outcome.RELEASED, 0)}


def test_marks_are_seen_through_the_same_descriptor() -> None:
    mine = Marks.create(concurrency=2)
    theirs = Marks(os.dup(mine.descriptor), concurrency=2)

    mine.cells[0], mine.cells[1] = 7, 123
    mine.cells[2] = -8
    mine.finished += 5
    theirs.last_beat_ns = 99

    assert theirs.started() == [Mark(7, 123, has_ended=False), Mark(8, 0, has_ended=True)]
    assert (theirs.running, theirs.finished, mine.last_beat_ns) == (1, 5, 99)
    mine.close()
    theirs.close()


def ended(kind: ExitKind, lived: float = 1.0) -> RunnerExit:
    return RunnerExit(kind, 1, None, "reason", (), lived)


def test_pauses_between_restarts_grow_to_a_cap_and_start_anew_after_a_healthy_life() -> None:
    backoff = RestartBackoff(base=1.0, cap=10.0, healthy_after=30.0, crash_loop_after=3, random=Random(1))

    pauses = [backoff.delay_after(ended(ExitKind.CRASHED)) for _ in range(6)]

    assert all(
        low <= pause <= high
        for pause, (low, high) in zip(pauses, [(0.5, 1), (1, 2), (2, 4), (4, 8), (5, 10), (5, 10)], strict=True)
    )
    assert backoff.is_crash_loop
    assert backoff.delay_after(ended(ExitKind.CRASHED, lived=31.0)) <= 1.0
    assert not backoff.is_crash_loop


@pytest.mark.parametrize("kind", [ExitKind.STOPPED, ExitKind.FINISHED, ExitKind.REPLACE])
def test_exit_on_purpose_needs_no_pause(kind: ExitKind) -> None:
    backoff = RestartBackoff()

    assert backoff.delay_after(ended(kind)) == 0.0
    assert backoff.deaths == 0


@pytest.mark.parametrize("code", [RunnerExitCode.DONE, RunnerExitCode.FENCED, RunnerExitCode.STUCK])
def test_exit_code_of_a_job_is_not_taken_for_the_runners_own(code: RunnerExitCode) -> None:
    marks = Marks.create(1)
    handle = RunnerHandle("w", RunnerSpec(("app",), ("default",), 1), marks, slot=0)
    handle.state = RunnerState.RUNNING

    by_a_job = exit_of(handle, code).kind
    handle.state, handle.leaving = RunnerState.DRAINING, "it said why"
    by_itself = exit_of(handle, code).kind
    marks.close()

    assert by_a_job is ExitKind.CRASHED
    assert by_itself in {ExitKind.STOPPED, ExitKind.REPLACE}


def test_lines_are_cut_decoded_and_counted() -> None:
    lines: list[str] = []
    splitter = LineSplitter(lines.extend, clock=lambda: 0.0)

    for chunk in (b"one\ntw", b"o\r\n\xff\x80 caf\xc3", b"\xa9\n", b"x" * (MAX_LINE + 10), b"yy\nlast"):
        splitter.feed(chunk)
    splitter.close()

    assert lines[:3] == ["one", "two", "\ufffd\ufffd café"]
    assert lines[3] == "x" * MAX_LINE + " … [12 bytes cut]"
    assert lines[4] == "last"


def test_flood_of_lines_is_dropped_and_said() -> None:
    now = [0.0]
    lines: list[str] = []
    splitter = LineSplitter(lines.extend, clock=lambda: now[0])

    splitter.feed(b"line\n" * (LINES_PER_SECOND + 40))
    now[0] = 1.0
    splitter.feed(b"calm again\n")

    assert len(lines) == LINES_PER_SECOND + 2
    assert lines[-2:] == [f"[40 lines were dropped: more than {LINES_PER_SECOND} in a second]", "calm again"]


def test_nothing_is_claimed_ahead_of_slow_or_unknown_jobs() -> None:
    pace = Pace()
    assert pace.ahead(10) == 0

    for _ in range(20):
        pace.add([("slow", 5.0)])
    assert pace.ahead(10) == 0
    assert pace.chunk_size("slow") == 1

    quick = Pace()
    for _ in range(20):
        quick.add([("quick", 0.00001)])
    assert quick.ahead(10) == MOST_AHEAD
    assert quick.chunk_size("quick") > 1


def test_queues_are_asked_by_weight() -> None:
    rotation = Rotation([ServedQueue("mail", 3), ServedQueue("reports")])

    first = [rotation.order()[0] for _ in range(400)]

    assert (first.count("mail"), first.count("reports")) == (300, 100)


@pytest.mark.parametrize("queues", [(), ("a", "a"), ("a=0",), ("a=x",), ("=2",), ("a=1001",)])
def test_queues_that_make_no_sense_are_refused(queues: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSettings):
        served_queues(queues)


def test_busy_worker_holds_claims_back_for_a_suspect_and_loses_patience() -> None:
    suspects = Suspects(Random(1))
    assert suspects.wants_to_look(0.0)

    suspects.looked(is_waiting=True, now=0.0)
    assert suspects.holds_claims_back(False, 1.0)
    assert not suspects.holds_claims_back(False, PATIENCE + 1)

    suspects.looked(is_waiting=True, now=PATIENCE + 1)
    assert not suspects.holds_claims_back(False, PATIENCE + 2)
    assert not suspects.wants_to_look(PATIENCE + 30)


def test_nothing_is_claimed_beside_a_suspect() -> None:
    suspects = Suspects(Random(1))

    suspects.claimed(is_found=True, now=0.0)

    assert suspects.holds_claims_back(False, 100.0)
    assert not suspects.holds_claims_back(True, 100.0)


def test_report_survives_its_journey() -> None:
    report = Report(ReportKind.READY, "words\nand more", ("a", "b"))

    assert Report.decode(report.encode()) == report


def test_line_writer_drops_instead_of_blocking() -> None:
    from pgq_core.logs import LineWriter

    read, write = os.pipe()
    writer = LineWriter(write, capacity=100)

    for n in range(100_000):  # far more than the pipe and the queue hold, and nobody reads
        writer.write(b"x" * 100 + str(n).encode())
    assert writer.dropped > 0

    drained = threading.Thread(target=lambda: all(os.read(read, 65536) for _ in iter(int, 1)), daemon=True)
    drained.start()
    writer.close()
    os.close(write)
    drained.join(60)


def test_signals_have_names() -> None:
    from pgq_core.worker.exits import signal_name

    assert signal_name(signal.SIGSEGV) == "SIGSEGV"
