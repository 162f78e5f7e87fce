"""An operator and a worker, or two operators, at one job or dead letter at once."""

from __future__ import annotations

import pytest

from tests.interleavings.script import play
from tests.support.queue_database import QueueDatabase

DEAD = """
p: enqueue -> 1
w: claim -> 1
w: die 1 -> letter 1
"""
TWO_DEAD = """
p: enqueue -> 1
p: enqueue -> 2
w: claim 2 -> 1 2
w: die 1 2 -> letter 1 letter 2
"""


# Cancel


def test_a_job_that_is_being_cancelled_is_not_claimed(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        o: begin
        o: cancel 1 -> cancelled
        a: claim -> nothing
        o: commit
        a: claim -> nothing
        then: runs -> 1 cancelled
        """,
    )


def test_a_cancel_behind_a_claim_asks_the_worker(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: begin
        a: claim -> 1
        o: cancel 1 (blocks)
        a: commit
        o: unblocks -> requested
        a: fail 1 -> 1 cancelled
        then: runs -> 1 cancelled
        """,
    )


def test_a_cancel_behind_a_claim_that_failed_ends_the_job(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: begin
        a: claim -> 1
        o: cancel 1 (blocks)
        a: rollback
        o: unblocks -> cancelled
        a: finish 1 -> nothing
        then: jobs -> nothing
        then: runs -> 1 cancelled
        """,
    )


def test_a_cancel_behind_a_finish_comes_too_late(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        a: begin
        a: finish 1 -> 1
        o: cancel 1 (blocks)
        a: commit
        o: unblocks -> not found
        then: runs -> 1 succeeded
        """,
    )


def test_a_finish_behind_a_cancel_is_still_a_success(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        o: begin
        o: cancel 1 -> requested
        a: finish 1 (blocks)
        o: commit
        a: unblocks -> 1
        then: runs -> 1 succeeded
        """,
    )


def test_a_failure_behind_a_cancel_ends_the_job_instead_of_retrying_it(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        o: begin
        o: cancel 1 -> requested
        a: fail 1 (blocks)
        o: commit
        a: unblocks -> 1 cancelled
        then: jobs -> nothing
        """,
    )


def test_a_job_that_is_being_promoted_is_cancelled_afterwards(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: schedule -> 1
        m: begin
        m: promote -> 1
        o: cancel 1 (blocks)
        m: commit
        o: unblocks -> cancelled
        """,
    )


def test_cancels_in_clashing_order_do_not_deadlock(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        o: begin
        o: cancel 2 1 -> cancelled cancelled
        u: cancel 1 2 (blocks)
        o: commit
        u: unblocks -> not found not found
        then: runs -> 1 cancelled 2 cancelled
        """,
    )


# Pause and move


def test_a_pause_holds_for_every_claim_after_it_committed(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        o: begin
        o: pause -> paused
        a: claim -> 1
        o: commit
        a: claim -> nothing
        a: finish 1 -> 1
        o: resume -> resumed
        a: claim -> 2
        """,
    )


def test_a_pause_waits_for_no_claim(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: begin
        a: claim -> 1
        o: pause -> paused
        a: commit
        a: finish 1 -> 1
        """,
    )


def test_a_job_that_is_being_moved_is_claimed_in_its_new_queue_only(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        o: begin
        o: move r 1 -> moved
        a: claim -> nothing
        a: claim 1 r -> nothing
        o: commit
        a: claim -> nothing
        a: claim 1 r -> 1
        """,
    )


def test_a_move_behind_a_claim_leaves_the_job_where_it_runs(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: begin
        a: claim -> 1
        o: move r 1 (blocks)
        a: commit
        o: unblocks -> left
        a: finish 1 -> 1
        """,
    )


# Replay, discard, edit, undo


@pytest.mark.parametrize(
    ("first", "end", "second", "answer", "letters"),
    [
        ("replay 1 -> job 2", "commit", "replay 1", "refused", "1 replayed"),
        ("replay 1 -> job 2", "rollback", "replay 1", "job 3", "1 replayed"),
        ("replay 1 -> job 2", "commit", "discard 1", "refused", "1 replayed"),
        ("replay 1 -> job 2", "rollback", "discard 1", "discarded", "1 discarded"),
        ("discard 1 -> discarded", "commit", "replay 1", "refused", "1 discarded"),
        ("discard 1 -> discarded", "rollback", "replay 1", "job 2", "1 replayed"),
        ("discard 1 -> discarded", "commit", "discard 1", "refused", "1 discarded"),
        ("replay 1 -> job 2", "commit", "edit 1 other", "nothing", "1 replayed"),
        ("replay 1 -> job 2", "rollback", "edit 1 other", "edited", "1 open"),
    ],
)
def test_of_two_operators_at_one_dead_letter_the_first_one_counts(
    database: QueueDatabase, *, first: str, end: str, second: str, answer: str, letters: str
) -> None:
    play(
        database,
        f"""
        {DEAD}
        a: begin
        a: {first}
        b: {second} (blocks)
        a: {end}
        b: unblocks -> {answer}
        then: letters -> {letters}
        """,
    )


def test_a_replay_behind_an_edit_runs_what_was_edited(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DEAD}
        a: begin
        a: edit 1 better -> edited
        b: replay 1 (blocks)
        a: commit
        b: unblocks -> job 2
        then: data 2 -> better
        """,
    )


def test_storms_of_replays_in_clashing_order_make_one_job_each(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {TWO_DEAD}
        a: begin
        a: replay 2 1 -> job 3 job 4
        b: replay 1 2 (blocks)
        c: discard 2 1 (blocks)
        a: commit
        b: unblocks -> refused refused
        c: unblocks -> refused refused
        then: jobs -> 3 pending 4 pending
        then: letters -> 1 replayed 2 replayed
        """,
    )


def test_an_undo_takes_back_a_replay_that_nobody_has_claimed(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DEAD}
        a: replay 1 -> job 2
        a: begin
        a: undo replayed a 1 -> undone
        w: claim -> nothing
        a: commit
        w: claim -> nothing
        then: jobs -> nothing
        then: letters -> 1 open
        """,
    )


def test_an_undo_behind_the_claim_of_the_new_job_is_refused(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DEAD}
        a: replay 1 -> job 2
        w: begin
        w: claim -> 2
        a: undo replayed a 1 (blocks)
        w: commit
        a: unblocks -> refused
        then: letters -> 1 replayed
        w: finish 2 -> 2
        """,
    )


def test_an_undo_behind_a_claim_that_was_rolled_back_succeeds(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DEAD}
        a: replay 1 -> job 2
        w: begin
        w: claim -> 2
        a: undo replayed a 1 (blocks)
        w: rollback
        a: unblocks -> undone
        then: jobs -> nothing
        """,
    )


def test_a_replay_behind_an_undo_makes_the_only_job(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DEAD}
        a: replay 1 -> job 2
        a: begin
        a: undo replayed a 1 -> undone
        b: replay 1 (blocks)
        a: commit
        b: unblocks -> job 3
        then: jobs -> 3 pending
        """,
    )


def test_two_undoings_of_one_replay_take_it_back_once(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DEAD}
        a: replay 1 -> job 2
        a: begin
        a: undo replayed a 1 -> undone
        b: undo replayed a 1 (blocks)
        a: commit
        b: unblocks -> refused
        then: letters -> 1 open
        """,
    )
