"""Producers with one key at once, and retention beside everybody else."""

from __future__ import annotations

import pytest

from tests.interleavings.script import play
from tests.support.queue_database import QueueDatabase


def test_two_producers_with_one_key_make_one_job(database: QueueDatabase) -> None:
    play(
        database,
        """
        a: begin
        a: enqueue k -> 1
        b: enqueue k (blocks)
        c: insert k (blocks)
        a: commit
        b: unblocks -> 1
        c: unblocks -> nothing
        then: jobs -> 1 pending
        then: key k -> 1 live
        """,
    )


def test_a_key_whose_first_producer_rolled_back_goes_to_the_second(database: QueueDatabase) -> None:
    play(
        database,
        """
        a: begin
        a: enqueue k -> 1
        b: enqueue k (blocks)
        a: rollback
        b: unblocks -> 2
        then: jobs -> 2 pending
        then: key k -> 2 live
        """,
    )


def test_batches_with_keys_in_clashing_order_do_not_deadlock(database: QueueDatabase) -> None:
    play(
        database,
        """
        a: begin
        a: batch x y z -> new new new
        b: batch z y x (blocks)
        a: commit
        b: unblocks -> unknown unknown unknown
        b: batch z y x -> old old old
        then: jobs -> 1 pending 2 pending 3 pending
        """,
    )


@pytest.mark.parametrize(("ending", "key"), [("finish 1 -> 1", "1 kept"), ("die 1 -> letter 1", "1 held")])
def test_a_producer_behind_the_end_of_the_keys_job_gets_that_job(
    database: QueueDatabase, ending: str, key: str
) -> None:
    play(
        database,
        f"""
        p: enqueue k -> 1
        a: claim -> 1
        a: begin
        a: {ending}
        b: enqueue k (blocks)
        a: commit
        b: unblocks -> 1
        then: jobs -> nothing
        then: key k -> {key}
        """,
    )


def test_a_producer_behind_an_end_that_was_rolled_back_gets_the_living_job(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue k -> 1
        a: claim -> 1
        a: begin
        a: finish 1 -> 1
        b: enqueue k (blocks)
        a: rollback
        b: unblocks -> 1
        a: finish 1 -> 1
        then: key k -> 1 kept
        """,
    )


def test_a_producer_behind_the_retry_of_the_keys_job_gets_that_job(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue k -> 1
        a: claim -> 1
        a: begin
        a: fail 1 -> 1
        b: enqueue k (blocks)
        a: commit
        b: unblocks -> 1
        then: key k -> 1 live
        """,
    )


def test_a_replay_and_a_producer_never_both_get_the_key(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue k -> 1
        w: claim -> 1
        w: die 1 -> letter 1
        a: begin
        a: replay 1 -> job 2
        b: enqueue k (blocks)
        a: commit
        b: unblocks -> 2
        then: jobs -> 2 pending
        then: key k -> 2 live
        """,
    )


def test_a_key_that_is_being_taken_over_is_not_pruned(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue k -> 1
        w: claim -> 1
        w: finish 1 -> 1
        m: end-window k
        a: begin
        a: enqueue k -> 2
        m: prune-keys -> 0
        a: commit
        m: prune-keys -> 0
        then: key k -> 2 live
        """,
    )


def test_a_producer_behind_the_pruning_of_its_key_gets_it(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue k -> 1
        w: claim -> 1
        w: finish 1 -> 1
        m: end-window k
        m: begin
        m: prune-keys -> 1
        a: enqueue k (blocks)
        m: commit
        a: unblocks -> 2
        then: key k -> 2 live
        """,
    )


# Retention

DISCARDED = """
p: enqueue -> 1
w: claim -> 1
w: die 1 -> letter 1
o: discard 1 -> discarded
"""


def test_a_letter_whose_resolution_is_being_undone_is_not_pruned(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DISCARDED}
        o: begin
        o: undo discarded o 1 -> undone
        m: prune-letters -> 0
        o: commit
        m: prune-letters -> 0
        then: letters -> 1 open
        """,
    )


def test_an_undo_behind_the_pruning_finds_no_letter(database: QueueDatabase) -> None:
    play(
        database,
        f"""
        {DISCARDED}
        m: begin
        m: prune-letters -> 1
        o: undo discarded o 1 (blocks)
        m: commit
        o: unblocks -> nothing
        then: letters -> nothing
        """,
    )


def test_a_letter_that_is_being_replayed_is_not_pruned(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        w: claim -> 1
        w: die 1 -> letter 1
        o: begin
        o: replay 1 -> job 2
        m: prune-letters -> 0
        o: commit
        then: jobs -> 2 pending
        """,
    )


def test_statistics_that_are_being_summed_up_hold_no_finish_up_and_none_is_lost(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        a: claim 2 -> 1 2
        a: finish 1 -> 1
        b: begin
        a: begin
        a: finish 2 -> 2
        m: sum-stats
        a: commit
        m: sum-stats
        b: commit
        then: counted -> 2
        """,
    )


def test_a_day_of_runs_is_not_dropped_under_a_finish(database: QueueDatabase) -> None:
    play(
        database,
        """
        m: old-day
        p: enqueue -> 1
        a: claim -> 1
        a: begin
        a: finish 1 -> 1
        m: drop-day -> error 55P03
        a: commit
        m: drop-day -> dropped
        then: runs -> 1 succeeded
        """,
    )


def test_a_day_on_which_a_running_job_was_claimed_is_kept(database: QueueDatabase) -> None:
    play(
        database,
        """
        m: old-day
        p: enqueue -> 1
        a: claim -> 1
        a: claimed-long-ago 1
        m: drop-day -> nothing
        a: finish 1 -> 1
        """,
    )


def test_a_finish_behind_the_drop_of_an_old_day_gets_through(database: QueueDatabase) -> None:
    play(
        database,
        """
        m: old-day
        p: enqueue -> 1
        a: claim -> 1
        m: begin
        m: drop-day -> dropped
        a: finish 1 (blocks)
        m: commit
        a: unblocks -> 1
        then: runs -> 1 succeeded
        """,
    )
