"""What a test may expect of a queue, and what it is told when it expected too much."""

from __future__ import annotations

from datetime import UTC, datetime

import psycopg
import pytest
from pydantic import BaseModel

from pgq_core import Registry
from pgq_core.testing import QueueUnderTest


class Invoice(BaseModel):
    customer: int
    due: datetime


DUE = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_job_that_fits_is_answered(queue: QueueUnderTest, registry: Registry) -> None:
    @registry.handler("bill", model=Invoice, queue="billing")
    def bill(invoice: Invoice) -> None: ...

    enqueued = bill.enqueue(queue, customer=1, due=DUE)

    job = queue.assert_enqueued(bill, data=Invoice(customer=1, due=DUE), queue="billing", count=1)
    assert (job.id, job.status, job.attempts) == (enqueued.id, "pending", 0)
    queue.assert_enqueued("bill")
    queue.assert_not_enqueued("bill", queue="other")
    queue.assert_not_enqueued("bill", data={"customer": 2})


def test_a_complaint_says_what_is_there_instead(queue: QueueUnderTest) -> None:
    queue.enqueue("send_email", {"to": "b@example.org"}, queue="mail")

    with pytest.raises(AssertionError) as complaint:
        queue.assert_enqueued("send_email", data={"to": "a@example.org"})

    assert str(complaint.value) == (
        "no job enqueued with type 'send_email', data {'to': 'a@example.org'}\n"
        "  send_email in mail: {'to': 'b@example.org'} (pending)"
    )


def test_counts_are_exact(queue: QueueUnderTest) -> None:
    queue.enqueue("a")
    queue.enqueue("a")

    with pytest.raises(AssertionError, match="2 instead of 1 jobs enqueued with type 'a'"):
        queue.assert_enqueued("a", count=1)
    with pytest.raises(AssertionError, match="2 instead of 0"):
        queue.assert_not_enqueued("a")
    queue.empty()
    with pytest.raises(AssertionError, match="the queue is empty"):
        queue.assert_enqueued("a")


def test_an_open_transaction_is_seen_through_its_own_connection(queue: QueueUnderTest, module_dsn: str) -> None:
    with psycopg.connect(module_dsn) as conn:
        queue.enqueue("a", conn=conn)

        queue.assert_enqueued("a", conn=conn)
        queue.assert_not_enqueued("a")
        conn.rollback()
        queue.assert_not_enqueued("a", conn=conn)
