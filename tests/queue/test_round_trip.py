"""Through PostgreSQL and back: what is accepted arrives equal, with the same types."""

from __future__ import annotations

import unicodedata
from typing import Any

from hypothesis import HealthCheck, given, settings

from pgq_core import InvalidPayload, JobQueue
from tests.domain.test_payload_properties import VALUES, same

KEPT: dict[str, Any] = {
    "2**63": 2**63,
    "-2**63 - 1": -(2**63) - 1,
    "2**53 + 1": 2**53 + 1,
    "10**400": 10**400,
    "the longest integer": 10**4300 - 1,
    "0.1": 0.1,
    "1.0 and 1": [1.0, 1, True],
    "large floats": [1e16, 1e22, 1e23, 1.7976931348623157e308, -123456789012345680000.0],
    "small floats": [5e-324, 2.2250738585072014e-308, 1e-7],
    "an empty key": {"": {"": 1}},
    "NFC and NFD": {unicodedata.normalize("NFC", "é"): 1, unicodedata.normalize("NFD", "é"): 2},
    "signs": "\x01\x1f\x7f\x80\u2028\u202e\ufeff\uffff😀\U0010ffff",
    "markup": ["[/x]", "[red]", "\x1b[31m", "%s {0} $1", "'; DROP TABLE jobs; --"],
    "backslashes": ["\\", "\\u0000", '\\"', "\\x00"],
    "10,000 keys": {f"key {number}": number for number in range(10_000)},
    "order of a list": list(range(1000, 0, -1)),
    "nothing": [None, {}, [], "", 0, False],
}


def test_a_value_arrives_as_it_was_sent(queue: JobQueue) -> None:
    for name, value in KEPT.items():
        job = queue.enqueue("t", value)

        (claimed,) = queue.claim()

        assert same(claimed.data, value), name
        assert same(queue.get(job.id).data, {} if value is None else value), name


def test_the_sign_of_zero_is_not_kept(queue: JobQueue) -> None:
    queue.enqueue("t", -0.0)

    (claimed,) = queue.claim()

    assert same(claimed.data, 0.0)


def test_deep_nesting_arrives(queue: JobQueue) -> None:
    value: Any = "core"
    for level in range(200):
        value = [value] if level % 2 else {"in": value}

    queue.enqueue("t", value)

    assert queue.claim()[0].data == value


def test_a_batch_keeps_values_too(queue: JobQueue) -> None:
    answers = queue.enqueue_many([("t", value) for value in KEPT.values()])

    for answer, value in zip(answers, KEPT.values(), strict=True):
        assert same(queue.get(answer.id).data, value)


def test_any_accepted_value_arrives_equal(queue: JobQueue) -> None:
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(VALUES)
    def round_trip(value: Any) -> None:
        try:
            job = queue.enqueue("t", value)
        except InvalidPayload:
            return
        assert same(queue.get(job.id).data, {} if value is None else value)

    round_trip()


def test_a_result_arrives_as_it_was_given(queue: JobQueue) -> None:
    for value in KEPT.values():
        job = queue.enqueue("t")
        queue.complete(queue.claim()[0], value)
        assert same(queue.result(job.id, 5), value)
