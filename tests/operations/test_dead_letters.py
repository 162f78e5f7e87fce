from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection

from pgq_core.database import connect
from pgq_core.domain.filters import DeadLetterFilters
from pgq_core.errors import InvalidPayload, OperationRefused
from pgq_core.inspector import Inspector
from pgq_core.operations import Operations, automatic_spread
from pgq_core.queries import Queries
from tests.support.operator import OPERATOR
from tests.support.zoo import add_dead_letter, add_job, start_job, value_of

Conn = AsyncConnection[Any]


async def test_replayed_job_gets_a_fresh_budget_and_both_rows_point_at_each_other(
    conn: Conn, operations: Operations
) -> None:
    letter = await add_dead_letter(conn, attempts=3, max_attempts=3)

    result = await operations.replay(conn, [letter], reason="fixed")

    (item,) = result.items
    assert item.refusal is None
    job = await (
        await conn.execute(
            "SELECT attempts, max_attempts, replayed_from, status FROM jobs WHERE id = %s", (item.job_id,)
        )
    ).fetchone()
    assert job == (0, 3, letter, "pending")
    assert await value_of(conn, "SELECT replayed_job_id FROM dead_letter_jobs WHERE id = %s", letter) == item.job_id


async def test_every_verb_is_written_down_with_operator_reason_and_numbers(conn: Conn, operations: Operations) -> None:
    letters = [await add_dead_letter(conn), await add_dead_letter(conn)]

    result = await operations.discard(conn, [*letters, 987654], reason="no longer\x00 wanted")

    row = await (
        await conn.execute(
            "SELECT operator, action, target, reason, affected, refused FROM operations WHERE id = %s",
            (result.operation_id,),
        )
    ).fetchone()
    assert row == (OPERATOR, "discard", "3 dead letters", "no longer␀ wanted", 2, 1)


async def test_unknown_and_resolved_ids_are_refused_one_by_one_and_the_rest_goes_on(
    conn: Conn, operations: Operations
) -> None:
    gone, alive = await add_dead_letter(conn), await add_dead_letter(conn)
    await operations.discard(conn, [gone])

    result = await operations.replay(conn, [gone, alive, 987654])

    refusals = {item.id: item.refusal for item in result.items}
    assert refusals[alive] is None
    assert refusals[gone] == f"already discarded by {OPERATOR}"
    assert refusals[987654] == "there is no dead letter 987654"
    assert (result.done, result.refused) == (1, 2)


async def test_letter_whose_key_is_live_again_is_refused_and_stays_while_others_go_on(
    conn: Conn, operations: Operations
) -> None:
    keyed, plain = await add_dead_letter(conn, key="welcome-1"), await add_dead_letter(conn)
    await conn.execute("UPDATE job_keys SET expires_at = '-infinity' WHERE key = 'welcome-1'")
    holder = await add_job(conn, key="welcome-1")

    result = await operations.replay(conn, [keyed, plain])

    refusals = {item.id: item.refusal for item in result.items}
    assert refusals == {keyed: f"its idempotency key is held by live job {holder}", plain: None}
    assert await value_of(conn, "SELECT resolution FROM dead_letter_jobs WHERE id = %s", keyed) is None


async def test_discarding_a_letter_whose_key_is_live_again_leaves_the_live_job_alone(
    conn: Conn, operations: Operations
) -> None:
    keyed = await add_dead_letter(conn, key="welcome-1")
    await conn.execute("UPDATE job_keys SET expires_at = '-infinity' WHERE key = 'welcome-1'")
    holder = await add_job(conn, key="welcome-1")

    result = await operations.discard(conn, [keyed])

    assert result.done == 1
    assert await value_of(conn, "SELECT count(*) FROM jobs WHERE id = %s", holder) == 1
    assert await value_of(conn, "SELECT expires_at IS NULL FROM job_keys WHERE key = 'welcome-1'") is True


async def test_replay_acts_on_the_previewed_set_and_not_on_what_died_meanwhile(
    conn: Conn, operations: Operations
) -> None:
    wanted = [await add_dead_letter(conn, fingerprint="wanted") for _ in range(3)]
    other = await add_dead_letter(conn, fingerprint="other")
    preview = await operations.preview(conn, DeadLetterFilters(fingerprint="wanted"))
    latecomer = await add_dead_letter(conn, fingerprint="wanted")

    result = await operations.replay(conn, preview.ids)

    assert preview.count == result.done == 3
    assert sorted(preview.ids) == wanted
    unresolved = await conn.execute("SELECT id FROM dead_letter_jobs WHERE resolution IS NULL ORDER BY id")
    assert [row[0] async for row in unresolved] == [other, latecomer]


async def test_preview_counts_everything_and_shows_a_sample(conn: Conn, operations: Operations) -> None:
    ids = [await add_dead_letter(conn, error=f"ValueError: {n}") for n in range(12)]

    preview = await operations.preview(conn, DeadLetterFilters())

    assert preview.ids == tuple(reversed(ids))
    assert [letter.id for letter in preview.sample] == list(reversed(ids))[:10]


async def test_preview_takes_no_more_than_the_limit(conn: Conn, operations: Operations) -> None:
    ids = [await add_dead_letter(conn) for _ in range(5)]

    preview = await operations.preview(conn, DeadLetterFilters(), limit=2)

    assert preview.ids == (ids[4], ids[3])


async def test_bulk_goes_in_transactions_of_at_most_500_under_one_operation(conn: Conn, operations: Operations) -> None:
    await conn.execute(
        """INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
           SELECT n, 'default', '{"type": "bulk"}', 'boom', 5 FROM generate_series(1, 1100) n"""
    )
    preview = await operations.preview(conn, DeadLetterFilters(job_type="bulk"))
    steps: list[tuple[int, int]] = []

    result = await operations.replay(conn, preview.ids, progress=lambda done, total: steps.append((done, total)))

    assert steps == [(500, 1100), (1000, 1100), (1100, 1100)]
    assert await value_of(conn, "SELECT affected FROM operations WHERE id = %s", result.operation_id) == 1100
    assert await value_of(conn, "SELECT count(DISTINCT created_at) FROM jobs") == 3


async def test_many_replays_become_due_evenly_over_a_span_and_few_at_once(conn: Conn, operations: Operations) -> None:
    await conn.execute(
        """INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
           SELECT n, 'default', '{"type": "bulk"}', 'boom', 5 FROM generate_series(1, 600) n"""
    )
    preview = await operations.preview(conn, DeadLetterFilters())

    await operations.replay(conn, preview.ids)

    span = automatic_spread(600)
    assert span == timedelta(seconds=6)
    shares = await conn.execute(
        "SELECT count(*) FROM jobs GROUP BY floor(extract(epoch FROM not_before - created_at)) ORDER BY 1"
    )
    counts = [row[0] async for row in shares]
    assert len(counts) == 6
    assert max(counts) <= 110


async def test_spread_of_zero_makes_all_due_at_once(conn: Conn, operations: Operations) -> None:
    letters = [await add_dead_letter(conn) for _ in range(3)]

    await operations.replay(conn, letters, spread=timedelta(0))

    assert await value_of(conn, "SELECT count(*) FROM jobs WHERE status = 'pending' AND not_before <= now()") == 3


async def test_two_operators_who_replay_the_same_ids_get_one_job_per_letter(
    dsn: str, conn: Conn, operations: Operations, queries: Queries
) -> None:
    letters = [await add_dead_letter(conn) for _ in range(40)]
    other = await connect(dsn, application_name="other operator")
    try:
        both = await asyncio.gather(
            operations.replay(conn, letters), Operations(queries, operator="other@test").replay(other, letters[::-1])
        )
    finally:
        await other.close()

    assert sum(result.done for result in both) == 40
    assert sum(result.refused for result in both) == 40
    assert await value_of(conn, "SELECT count(*) FROM jobs") == 40


async def test_nothing_is_done_and_written_for_no_ids(conn: Conn, operations: Operations) -> None:
    result = await operations.replay(conn, [])

    assert (result.operation_id, result.items) == (None, ())
    assert await value_of(conn, "SELECT count(*) FROM operations") == 0


async def test_edited_payload_is_replayed_to_the_digit_and_the_first_one_is_kept(
    conn: Conn, operations: Operations, inspector: Inspector
) -> None:
    letter = await add_dead_letter(conn, data={"amount": 1})
    edited = '{"type": "send_email", "data": {"amount": 0.1000000000000000055511151231257827021181583404541015625}}'

    result = await operations.edit_and_replay(conn, letter, edited, reason="typo")

    stored = await value_of(conn, "SELECT payload #>> '{data,amount}' FROM jobs WHERE id = %s", result.items[0].job_id)
    assert stored == "0.1000000000000000055511151231257827021181583404541015625"
    detail = await inspector.dead_letter(conn, letter)
    assert detail is not None
    assert json.loads(detail.original_payload_text or "") == {"type": "send_email", "data": {"amount": 1}}


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"data": 1}', '{"type": ""}', '{"type": "a", "data": "\\u0000"}', "NaN"]
)
async def test_payload_that_jobs_would_refuse_is_refused_before_anything_is_written(
    conn: Conn, operations: Operations, text: str
) -> None:
    letter = await add_dead_letter(conn)

    with pytest.raises(InvalidPayload):
        await operations.edit_and_replay(conn, letter, text)

    assert await value_of(conn, "SELECT original_payload FROM dead_letter_jobs WHERE id = %s", letter) is None
    assert await value_of(conn, "SELECT count(*) FROM operations") == 0


async def test_refused_replay_takes_its_edit_with_it(conn: Conn, operations: Operations) -> None:
    letter = await add_dead_letter(conn, key="k", data={"a": 1})
    await conn.execute("UPDATE job_keys SET expires_at = '-infinity' WHERE key = 'k'")
    await add_job(conn, key="k")

    result = await operations.edit_and_replay(conn, letter, '{"type": "send_email", "data": {"a": 2}}')

    assert result.refused == 1
    row = await (
        await conn.execute("SELECT payload -> 'data' ->> 'a', original_payload FROM dead_letter_jobs")
    ).fetchone()
    assert row == ("1", None)


async def test_undone_replay_takes_the_unclaimed_job_back_and_the_letter_is_unresolved_again(
    conn: Conn, operations: Operations
) -> None:
    letter = await add_dead_letter(conn, key="k")
    replayed = await operations.replay(conn, [letter])

    undone = await operations.undo(conn, replayed.operation_id or 0)

    assert undone.done == 1
    assert await value_of(conn, "SELECT count(*) FROM jobs") == 0
    assert await value_of(conn, "SELECT resolution FROM dead_letter_jobs WHERE id = %s", letter) is None
    assert await value_of(conn, "SELECT expires_at = 'infinity' FROM job_keys WHERE key = 'k'") is True
    assert await value_of(conn, "SELECT undone_by FROM operations WHERE id = %s", replayed.operation_id) == OPERATOR


async def test_replay_whose_job_was_claimed_cannot_be_undone_although_it_was_handed_back(
    conn: Conn, operations: Operations
) -> None:
    letter = await add_dead_letter(conn)
    replayed = await operations.replay(conn, [letter])
    job_id = replayed.items[0].job_id or 0
    await start_job(conn, job_id)
    await conn.execute("UPDATE jobs SET locked_by = NULL, locked_at = NULL WHERE id = %s", (job_id,))

    undone = await operations.undo(conn, replayed.operation_id or 0)

    assert [item.refusal for item in undone.items] == [f"job {job_id} has already been claimed"]
    assert await value_of(conn, "SELECT count(*) FROM jobs") == 1


async def test_undo_leaves_alone_what_somebody_resolved_again_since(
    conn: Conn, operations: Operations, queries: Queries
) -> None:
    letter = await add_dead_letter(conn)
    discarded = await operations.discard(conn, [letter])
    await conn.execute("SELECT * FROM undo_resolutions(ARRAY[%s]::bigint[])", (letter,))
    await Operations(queries, operator="other@test").replay(conn, [letter])

    undone = await operations.undo(conn, discarded.operation_id or 0)

    assert [item.refusal for item in undone.items] == ["it has been resolved again since"]
    assert await value_of(conn, "SELECT resolution FROM dead_letter_jobs WHERE id = %s", letter) == "replayed"


async def test_undone_edit_brings_the_first_payload_back(conn: Conn, operations: Operations) -> None:
    letter = await add_dead_letter(conn, data={"a": 1})
    edited = await operations.edit_and_replay(conn, letter, '{"type": "send_email", "data": {"a": 2}}')

    await operations.undo(conn, edited.operation_id or 0)

    row = await (
        await conn.execute("SELECT payload -> 'data' ->> 'a', original_payload, resolution FROM dead_letter_jobs")
    ).fetchone()
    assert row == ("1", None, None)


async def test_an_action_is_undone_once(conn: Conn, operations: Operations) -> None:
    letter = await add_dead_letter(conn)
    discarded = await operations.discard(conn, [letter])
    await operations.undo(conn, discarded.operation_id or 0)

    with pytest.raises(OperationRefused, match="was undone already by ops@test"):
        await operations.undo(conn, discarded.operation_id or 0)
    with pytest.raises(OperationRefused, match="there is no operation 987654"):
        await operations.undo(conn, 987654)


async def test_bulk_undo_takes_all_batches_back(conn: Conn, operations: Operations) -> None:
    await conn.execute(
        """INSERT INTO dead_letter_jobs (original_job_id, queue, payload, last_error, attempts)
           SELECT n, 'default', '{"type": "bulk"}', 'boom', 5 FROM generate_series(1, 700) n"""
    )
    preview = await operations.preview(conn, DeadLetterFilters())
    discarded = await operations.discard(conn, preview.ids)

    undone = await operations.undo(conn, discarded.operation_id or 0)

    assert undone.done == 700
    assert await value_of(conn, "SELECT count(*) FROM dead_jobs") == 700


async def test_undo_leaves_alone_what_another_operator_resolved_in_the_same_way(
    conn: Conn, operations: Operations, queries: Queries
) -> None:
    letter = await add_dead_letter(conn)
    discarded = await operations.discard(conn, [letter])
    await conn.execute("SELECT * FROM undo_resolutions(ARRAY[%s]::bigint[])", (letter,))
    await Operations(queries, operator="other@test").discard(conn, [letter])

    undone = await operations.undo(conn, discarded.operation_id or 0)

    assert undone.refused == 1
    assert await value_of(conn, "SELECT resolved_by FROM dead_letter_jobs WHERE id = %s", letter) == "other@test"


async def test_resolved_letter_is_not_edited(conn: Conn, operations: Operations) -> None:
    letter = await add_dead_letter(conn, data={"a": 1})
    await operations.discard(conn, [letter])

    result = await operations.edit_and_replay(conn, letter, '{"type": "send_email", "data": {"a": 2}}')

    assert result.refused == 1
    assert await value_of(conn, "SELECT original_payload FROM dead_letter_jobs WHERE id = %s", letter) is None
    assert await value_of(conn, "SELECT payload -> 'data' ->> 'a' FROM dead_letter_jobs WHERE id = %s", letter) == "1"


async def test_unknown_letter_is_not_edited(conn: Conn, operations: Operations) -> None:
    result = await operations.edit_and_replay(conn, 987654, '{"type": "a"}')

    assert [item.refusal for item in result.items] == ["there is no dead letter 987654"]
