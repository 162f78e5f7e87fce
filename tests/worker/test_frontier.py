"""The lower bound of the claims, and the sweep in front of it: pure, without a clock or a database."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pgq_core.domain.stretch import WHOLE_QUEUE, Position, Stretch
from pgq_core.queries.claims import ClaimedRow
from pgq_core.worker.frontier import MARK_EVERY, MOST_LEVELS, TRAIL, Frontier
from pgq_core.worker.sweep import EVERY, LONGEST_SLICE, QUICK, SHARE, Sweep

NOW = 1_700_000_000.0
POSITIONS = st.builds(
    Position,
    st.integers(-32767, 32768),
    st.one_of(st.floats(NOW - 1e6, NOW), st.sampled_from([NOW - 1, NOW - 2])),
    st.integers(1, 2**40),
)


def row(job_id: int, due: float, priority: int = 0) -> ClaimedRow:
    return ClaimedRow(
        job_id, "q", "t", None, None, priority, 0, 5, due, due, 1, None, 0, False, None, None, None, None, NOW
    )


def holds(stretches: Sequence[Stretch], position: Position) -> bool:
    found = [stretch for stretch in stretches if stretch.after < position <= stretch.until]
    assert len(found) <= 1, "no job may be looked at twice in one claim"
    return bool(found)


def test_a_worker_that_knows_nothing_looks_everywhere() -> None:
    assert Frontier().stretches() == (WHOLE_QUEUE,)
    assert Frontier().skipped() == []


def test_after_a_full_batch_the_next_claim_begins_behind_its_last_job() -> None:
    frontier = Frontier()
    frontier.advance([row(1, NOW - 60), row(2, NOW - 50)], is_full=True, now=NOW)

    assert not holds(frontier.stretches(), Position(0, NOW - 50, 2))
    assert holds(frontier.stretches(), Position(0, NOW - 50, 3))
    assert holds(frontier.skipped(), Position(0, NOW - 60, 1))


def test_a_short_batch_moves_the_bound_to_a_moment_before_now() -> None:
    frontier = Frontier()
    frontier.advance([row(1, NOW - 60)], is_full=False, now=NOW)

    assert not holds(frontier.stretches(), Position(0, NOW - 2 * TRAIL, 9))
    assert holds(frontier.stretches(), Position(0, NOW - TRAIL / 2, 1))


def test_a_bound_never_comes_closer_to_the_clock_than_the_trail() -> None:
    frontier = Frontier()
    frontier.advance([row(1, NOW - 0.01)], is_full=True, now=NOW)

    assert holds(frontier.stretches(), Position(0, NOW - 0.1, 2))


def test_jobs_of_a_higher_priority_are_seen_at_once_where_none_was_before() -> None:
    frontier = Frontier()
    frontier.advance([row(1, NOW - 60)], is_full=True, now=NOW)

    assert holds(frontier.stretches(), Position(-7, NOW - 3600, 5))
    assert holds(frontier.stretches(), Position(7, NOW - 3600, 5))


def test_a_full_batch_says_nothing_about_lower_priorities() -> None:
    frontier = Frontier()
    frontier.advance([row(1, NOW - 60, priority=5), row(2, NOW - 60)], is_full=False, now=NOW - 50)
    frontier.advance([row(3, NOW - 9, priority=5)], is_full=True, now=NOW)

    assert frontier.levels[-5].bound == Position(-5, NOW - 9, 3)
    assert frontier.levels[0].bound == Position(0, NOW - 50 - TRAIL, 0)


def test_a_clock_that_was_set_back_takes_the_bounds_back() -> None:
    frontier = Frontier()
    frontier.advance([row(1, NOW - 60)], is_full=False, now=NOW)
    frontier.advance([], is_full=False, now=NOW - 3600)

    assert holds(frontier.stretches(), Position(0, NOW - 3600, 2))


def test_many_priorities_share_the_walk_of_few_bounds() -> None:
    frontier = Frontier()
    for number in range(100):
        frontier.advance([row(number + 1, NOW - 60, priority=number)], is_full=False, now=NOW)

    assert len(frontier.levels) == MOST_LEVELS
    assert holds(frontier.stretches(), Position(-3, NOW - 60, 1))


@given(
    st.lists(st.tuples(POSITIONS, st.booleans(), st.floats(NOW - 1e6, NOW + 1e6)), max_size=30),
    st.lists(POSITIONS, max_size=10),
)
def test_every_position_is_either_searched_or_skipped_never_both(
    claims: list[tuple[Position, bool, float]], probes: list[Position]
) -> None:
    frontier = Frontier()
    for position, is_full, now in claims:
        rows = [row(position.id, position.due, -position.level)]
        frontier.advance([r for r in rows if -32768 <= r.priority <= 32767], is_full=is_full, now=now)
    for position in probes:
        assert holds(frontier.stretches(), position) != holds(frontier.skipped(), position)


def walked_frontier() -> Frontier:
    """A hundred thousand jobs were claimed here, and the marks say where."""
    frontier = Frontier()
    for number in range(1, 21):
        rows = [row(number * MARK_EVERY + n, NOW - 1000 + number) for n in range(MARK_EVERY)]
        frontier.advance(rows, is_full=True, now=NOW)
    return frontier


def test_a_quick_round_is_one_slice_and_comes_every_little_while() -> None:
    frontier, now = walked_frontier(), 50.0
    sweep = Sweep(frontier)
    sweep.began_at_the_start(QUICK / 2, now)
    assert not sweep.is_due(now + EVERY / 2)

    now += EVERY
    assert sweep.is_due(now)
    assert sweep.is_quick(now)
    slices = sweep.next_slice(now)
    assert holds(slices, Position(0, NOW - 990, 1))
    sweep.walked(slices, QUICK / 2, now)
    assert sweep.last_round == 0.0
    assert sweep.is_quick(now)


def test_a_long_way_is_walked_in_slices_within_their_share_of_the_time() -> None:
    """Half a second of dead entries: each slice is short, and pauses between them keep to the share."""
    frontier, now, per_stretch = walked_frontier(), 50.0, 0.005
    sweep, busy, begun = Sweep(frontier), 0.0, now
    longest = 0.0
    for _ in range(20):
        assert sweep.is_due(now)
        stretches = sweep.next_slice(now)
        seconds = per_stretch * len(stretches)
        longest = max(longest, seconds)
        sweep.walked(stretches, seconds, now + seconds)
        busy += seconds
        now += seconds
        while not sweep.is_due(now):
            now += 0.01

    assert longest <= LONGEST_SLICE
    assert busy / (now - begun) <= SHARE * 1.1
    assert sweep.last_round is not None
    assert sweep.last_round >= 0.1 / SHARE * 0.9
    assert not sweep.is_quick(now)


def test_a_stretch_that_takes_too_long_is_cut_for_the_next_round() -> None:
    frontier = Frontier()
    frontier.advance([row(1, NOW - 5)], is_full=False, now=NOW)
    sweep, now, slices = Sweep(frontier), 10.0, []
    for _ in range(400):
        stretches = sweep.next_slice(now)
        # All that died here is due within the same second, a long time ago.
        seconds = 0.5 * sum(overlap(stretch, NOW - 7000, NOW - 6999) for stretch in stretches)
        sweep.walked(stretches, max(seconds, 1e-5), now)
        slices.append(seconds)
        now += 30.0

    assert max(slices[:20]) > 0.1
    assert max(slices[-100:]) <= LONGEST_SLICE
    assert sum(slices[-100:]) > 0.5


def overlap(stretch: Stretch, begin: float, end: float) -> float:
    lower, upper = max(stretch.after.due, begin), min(stretch.until.due, end)
    return max(upper - lower, 0.0) / (end - begin) if not math.isinf(upper) else 0.0


def test_what_a_sweep_cannot_take_at_once_is_where_the_claims_go_on() -> None:
    frontier = walked_frontier()
    frontier.rewind([row(17, NOW - 980)])

    assert holds(frontier.stretches(), Position(0, NOW - 980, 18))
    assert frontier.levels[0].marks == [m for m in frontier.levels[0].marks if m < frontier.levels[0].bound]


def test_a_long_round_goes_over_the_newest_part_every_other_time() -> None:
    frontier, now = walked_frontier(), 50.0
    sweep = Sweep(frontier)
    newest = max(frontier.skipped(), key=lambda stretch: stretch.until.due)
    held = []
    for _ in range(10):
        stretches = sweep.next_slice(now)
        held.append(newest in stretches)
        sweep.walked(stretches, 0.005 * len(stretches), now)
        now += 1.0

    assert held[0]
    assert held[1::2] == [True] * 5
    assert held[2::2] == [False] * 4
