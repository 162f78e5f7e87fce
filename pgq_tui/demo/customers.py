"""What the shop's customers do: jobs that arrive at random, more by day than by night, and all at once now and then."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from pgq_core.job_queue import JobRequest
from pgq_tui.demo import shop

DAY = 180.0
"""Seconds of a demo's day: a wave that fits into a chart."""
BURST_EVERY = 45.0
BURST_SIZE = 250
FIRST_BURST = 12.0
NAMES = (
    "ada",
    "alan",
    "barbara",
    "claude",
    "dennis",
    "edsger",
    "grace",
    "hedy",
    "ida",
    "joan",
    "ken",
    "leslie",
    "tony",
)
ARTICLES = ("teapot", "kettle", "cup", "saucer", "tray", "strainer", "tin of assam", "tin of sencha")
WIDTHS = (64, 128, 256)
PICTURES = 200
IMPATIENT = 0.04
"""Share of the orders that are sent twice."""
FIRST_BROKEN, BROKEN_EVERY = 20.0, 240.0
"""Seconds from the start, and between two raw pictures that take a worker along: seen soon, and not all the time."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Jobs of one kind: how many a second on average, and how one is made from a number that is new each time."""

    rate: float
    make: Callable[[Random, int], JobRequest]


class Customers:
    """`jobs_between(a, b)`: the arrivals of that time, in seconds since the start. The same seed, the same jobs."""

    def __init__(self, seed: int | None = None, *, first_number: int = 1, burst_size: int = BURST_SIZE) -> None:
        self._random = Random(seed)  # noqa: S311 - a shop's visitors
        self._number = first_number
        self._burst_size = burst_size

    def first_visit(self) -> list[JobRequest]:
        """One job of every kind and the troublesome ones first, so that no screen stays empty for long."""
        jobs = [make(self._random, self._next()) for make in (_poison, _poison, _report, _report, _payment, _payment)]
        return jobs + [stream.make(self._random, self._next()) for stream in STREAMS]

    def jobs_between(self, start: float, end: float) -> list[JobRequest]:
        share = (end - start) * wave((start + end) / 2)
        jobs = [
            stream.make(self._random, self._next())
            for stream in STREAMS
            for _ in range(_poisson(self._random, stream.rate * share))
        ]
        if _falls_between(start, end, FIRST_BURST, BURST_EVERY):
            jobs += [_newsletter(self._random, self._next()) for _ in range(self._burst_size)]
        if start >= 0 and _falls_between(start, end, FIRST_BROKEN, BROKEN_EVERY):
            jobs.append(_broken_picture(self._next()))
        return jobs

    def _next(self) -> int:
        self._number += 1
        return self._number


def _falls_between(start: float, end: float, first: float, every: float) -> bool:
    """Whether what happens at `first` and then `every` so many seconds happens in this time."""
    return math.floor((start - first) / every) < math.floor((end - first) / every)


def wave(seconds: float) -> float:
    """
    >>> wave(0), wave(DAY / 4), round(wave(DAY * 3 / 4), 3)
    (1.0, 1.6, 0.4)
    """
    return 1 + 0.6 * math.sin(2 * math.pi * seconds / DAY)


def _poisson(random: Random, mean: float) -> int:
    """Knuth's way; means here are small."""
    count, product, floor = 0, random.random(), math.exp(-mean)
    while product > floor:
        count += 1
        product *= random.random()
    return count


def _address(random: Random) -> str:
    return f"{random.choice(NAMES)}{random.randint(1, 99)}@example.org"


def _confirmation(random: Random, number: int) -> JobRequest:
    # Impatient customers press twice: the second time it is the same key, and the same job.
    order = number - random.randint(1, 9) if random.random() < IMPATIENT else number
    data = {"to": f"{NAMES[order % len(NAMES)]}@example.org", "order": order, "items": 1 + order % 7}
    return JobRequest(shop.order_confirmation, data, idempotency_key=f"order-{order}")


def _newsletter(random: Random, number: int) -> JobRequest:
    data = {"to": _address(random), "subject": f"News no. {number // 100}", "body": "A new harvest has arrived."}
    return JobRequest(shop.send_email, data, priority=-10)


def _shipping_notice(random: Random, number: int) -> JobRequest:
    data = {"to": _address(random), "subject": f"Order {number} is on its way", "body": "It arrives tomorrow."}
    return JobRequest(shop.send_email, data, delay=random.uniform(0, 20))


def _password_reset(random: Random, number: int) -> JobRequest:
    return JobRequest(shop.password_reset, {"to": _address(random), "request": number}, priority=100)


def _invoice(random: Random, number: int) -> JobRequest:
    lines = [
        shop.Line(article=article, quantity=random.randint(1, 4), price=Decimal(random.randint(150, 9900)) / 100)
        for article in random.sample(ARTICLES, k=random.randint(1, 4))
    ]
    order = shop.Invoice(number=f"R-{number}", customer=random.randint(1, 5000), lines=lines)
    return JobRequest(shop.invoice, order, idempotency_key=f"invoice-{number}")


def _payment(random: Random, number: int) -> JobRequest:
    data = {"order": number, "amount": random.randint(500, 20000) / 100, "card": f"{random.randint(0, 9999):04}"}
    return JobRequest(shop.capture_payment, data)


def _poison(_random: Random, number: int) -> JobRequest:
    return JobRequest(shop.sync_to_warehouse, {"order": number})


def _picture(random: Random, _number: int) -> JobRequest:
    source = f"s3://shop/articles/{random.randrange(PICTURES):04}.jpg"
    return JobRequest(shop.resize_image, {"source": source, "width": random.choice(WIDTHS)})


def _raw_picture(_random: Random, number: int) -> JobRequest:
    return JobRequest(shop.import_raw_picture, {"file": f"IMG_{number % 10000:04}.NEF"})


def _broken_picture(number: int) -> JobRequest:
    return JobRequest(shop.import_raw_picture, {"file": f"IMG_{number % 10000:04}.NEF", "broken": True})


def _report(random: Random, _number: int) -> JobRequest:
    return JobRequest(shop.sales_report, {"month": f"2026-{random.randint(1, 12):02}"})


STREAMS = (
    Stream(4.0, _confirmation),
    Stream(1.0, _newsletter),
    Stream(1.0, _shipping_notice),
    Stream(0.5, _password_reset),
    Stream(2.0, _invoice),
    Stream(2.0, _payment),
    Stream(0.06, _poison),
    Stream(2.5, _picture),
    Stream(0.3, _raw_picture),
    Stream(0.12, _report),
)
