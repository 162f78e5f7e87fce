from __future__ import annotations

import math
from collections import Counter

from pgq_core.handlers import Handler
from pgq_core.job_queue import JobRequest
from pgq_tui.demo import customers, shop
from pgq_tui.demo.customers import BURST_EVERY, BURST_SIZE, DAY, FIRST_BURST, STREAMS, Customers, wave


def types_of(requests: list[JobRequest]) -> Counter[str]:
    return Counter(request.type.type for request in requests if isinstance(request.type, Handler))


def test_a_day_brings_every_kind_of_job_at_about_its_rate() -> None:
    shop_visitors = Customers(1)
    seconds = 4 * DAY

    seen = types_of([job for n in range(int(seconds)) for job in shop_visitors.jobs_between(n, n + 1)])

    bursts = BURST_SIZE * len([1 for n in range(100) if FIRST_BURST + n * BURST_EVERY <= seconds])
    assert set(seen) == set(shop.shop.types)
    expected = sum(stream.rate for stream in STREAMS) * seconds + bursts
    assert math.isclose(sum(seen.values()), expected, rel_tol=0.1)


def test_arrivals_come_in_a_wave_and_bursts() -> None:
    assert wave(DAY / 4) > 3 * wave(DAY * 3 / 4)
    visitors = Customers(1)

    calm = visitors.jobs_between(FIRST_BURST - 1, FIRST_BURST - 0.5)
    burst = visitors.jobs_between(FIRST_BURST - 0.1, FIRST_BURST + 0.1)

    assert len(calm) < BURST_SIZE / 4
    assert types_of(burst)["send_email"] >= BURST_SIZE


def test_the_first_visit_has_one_of_each_and_trouble_first() -> None:
    first = Customers(1).first_visit()

    assert set(types_of(first)) == set(shop.shop.types)
    assert isinstance(first[0].type, Handler)
    assert first[0].type.type == "sync_to_warehouse"


def test_the_same_seed_gives_the_same_jobs() -> None:
    one, other = (Customers(7, first_number=5).jobs_between(0, 30) for _ in range(2))

    assert one == other


def test_every_request_passes_its_handlers_own_check() -> None:
    visitors = Customers(3)

    for request in visitors.first_visit() + visitors.jobs_between(0, 60):
        assert isinstance(request.type, Handler)
        request.type.encode(request.data)


def test_an_order_that_is_sent_twice_is_the_same_job() -> None:
    orders = [
        r for r in Customers(2).jobs_between(0, 300) if r.idempotency_key and r.idempotency_key.startswith("order")
    ]

    by_key: dict[str, JobRequest] = {}
    for order in orders:
        assert order.idempotency_key is not None
        assert by_key.setdefault(order.idempotency_key, order).data == order.data
    assert len(by_key) < len(orders)
    assert customers.IMPATIENT > 0
