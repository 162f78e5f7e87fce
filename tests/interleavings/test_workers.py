"""Two workers, or a worker and somebody who takes its jobs away, at one job at once."""

from __future__ import annotations

from tests.interleavings.script import play
from tests.support.queue_database import QueueDatabase


def test_two_claims_take_different_jobs_and_wait_for_nobody(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        a: begin
        a: claim -> 1
        b: claim -> 2
        c: claim -> nothing
        a: commit
        c: claim -> nothing
        then: jobs -> 1 running 2 running
        """,
    )


def test_a_job_whose_claim_was_rolled_back_is_claimed_by_the_next(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: begin
        a: claim -> 1
        b: claim -> nothing
        a: rollback
        b: claim -> 1
        a: finish 1 -> nothing
        b: finish 1 -> 1
        """,
    )


def test_the_reaper_leaves_a_job_that_is_being_finished_alone(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        a: begin
        a: finish 1 -> 1
        r: reap -> nothing
        a: commit
        r: reap -> nothing
        then: runs -> 1 succeeded
        then: counted -> 1
        """,
    )


def test_a_finish_behind_the_reaper_finds_its_job_gone(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        r: begin
        r: reap -> 1
        a: finish 1 (blocks)
        r: commit
        a: unblocks -> nothing
        then: jobs -> 1 pending
        then: runs -> 1 lost
        """,
    )


def test_a_finish_behind_a_reaper_that_gave_up_is_accepted(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        r: begin
        r: reap -> 1
        a: finish 1 (blocks)
        r: rollback
        a: unblocks -> 1
        then: runs -> 1 succeeded
        """,
    )


def test_a_failure_behind_the_reaper_and_the_next_claim_changes_nothing(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        r: begin
        r: reap -> 1
        r: claim -> 1
        a: fail 1 (blocks)
        r: commit
        a: unblocks -> nothing
        r: finish 1 -> 1
        then: runs -> 1 lost 1 succeeded
        """,
    )


def test_two_reapers_rescue_a_job_once(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        a: claim 2 -> 1 2
        r: expire 1 2
        r: begin
        r: reap -> 1 2
        s: reap -> nothing
        r: commit
        s: reap -> nothing
        then: runs -> 1 lost 2 lost
        """,
    )


def test_a_keeper_waits_for_what_its_dead_runner_sent_last(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        a: claim 2 -> 1 2
        a: begin
        a: finish 1 -> 1
        k: bury-worker a (blocks)
        a: commit
        k: unblocks -> 2
        then: jobs -> 2 pending
        then: runs -> 1 succeeded 2 lost
        """,
    )


def test_keeper_and_reaper_never_rescue_the_same_job_twice(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        r: begin
        r: reap -> 1
        k: bury-worker a (blocks)
        r: commit
        k: unblocks -> nothing
        then: runs -> 1 lost
        """,
    )


def test_a_lease_that_is_being_renewed_is_not_reaped(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        a: begin
        a: extend 1 -> extended
        r: reap -> nothing
        a: commit
        r: reap -> nothing
        a: finish 1 -> 1
        """,
    )


def test_a_renewal_behind_the_reaper_is_refused(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        r: begin
        r: reap -> 1
        a: extend 1 (blocks)
        r: commit
        a: unblocks -> nothing
        then: jobs -> 1 pending
        """,
    )


def test_a_release_behind_the_reaper_gives_nothing_back_twice(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        a: claim -> 1
        r: expire 1
        r: begin
        r: reap -> 1
        a: release 1 (blocks)
        r: commit
        b: claim -> 1
        a: unblocks -> nothing
        then: jobs -> 1 running
        """,
    )


def test_a_promoted_job_can_be_claimed_when_the_promotion_is_through(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: schedule -> 1
        m: begin
        m: promote -> 1
        n: promote -> 0
        a: claim -> nothing
        m: commit
        a: claim -> 1
        """,
    )


def test_batches_in_clashing_order_do_not_deadlock(database: QueueDatabase) -> None:
    """One finishes upwards in two steps while the other asks for both, downwards."""
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        a: claim 2 -> 1 2
        a: begin
        a: finish 1 -> 1
        k: bury-worker a (blocks)
        a: finish 2 -> 2
        a: commit
        k: unblocks -> nothing
        then: runs -> 1 succeeded 2 succeeded
        """,
    )


def test_a_worker_that_hands_back_downwards_waits_for_one_that_goes_upwards(database: QueueDatabase) -> None:
    play(
        database,
        """
        p: enqueue -> 1
        p: enqueue -> 2
        a: claim 2 -> 1 2
        r: expire 1 2
        r: begin
        r: reap -> 1 2
        a: fail 2 1 (blocks)
        r: commit
        a: unblocks -> nothing
        then: jobs -> 1 pending 2 pending
        """,
    )
