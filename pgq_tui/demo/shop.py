"""The shop's handlers. `pgq-core worker --app pgq_tui.demo.shop:shop` runs them."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from decimal import Decimal
from random import Random
from typing import Any

from psycopg import AsyncConnection
from pydantic import BaseModel, Field

from pgq_core.domain.job import Job
from pgq_core.handlers import Registry
from pgq_tui.demo.mail import Mail, deliver
from pgq_tui.demo.pictures import resize_picture
from pgq_tui.demo.statements import shop_statement

shop = Registry()
random = Random()  # noqa: S311 - trouble in small doses

FLAKINESS = 0.3
EMAILS, BILLING, IMAGES, REPORTS = "emails", "billing", "images", "reports"


class PaymentDeclined(Exception):
    """The bank's answer to a card that may work in a minute."""


class Line(BaseModel):
    article: str
    quantity: int = Field(gt=0)
    price: Decimal = Field(gt=0, decimal_places=2)


class Invoice(BaseModel):
    number: str
    customer: int
    lines: list[Line] = Field(min_length=1)

    @property
    def total(self) -> Decimal:
        return sum((line.quantity * line.price for line in self.lines), Decimal(0))


@shop.handler("send_email", queue=EMAILS, transactional=True)
async def send_email(data: dict[str, str], job: Job, conn: AsyncConnection[Any]) -> None:
    await deliver(Mail(data["to"], data["subject"], data.get("body", "")), job.key, conn)


@shop.handler("order_confirmation", queue=EMAILS, transactional=True)
async def order_confirmation(data: dict[str, Any], job: Job, conn: AsyncConnection[Any]) -> None:
    body = f"Thank you! Order {data['order']} with {data['items']} items leaves our house tomorrow."
    await deliver(Mail(data["to"], f"Order {data['order']}", body), job.key, conn)


@shop.handler("password_reset", queue=EMAILS, transactional=True, timeout=10)
async def password_reset(data: dict[str, str], job: Job, conn: AsyncConnection[Any]) -> None:
    await deliver(Mail(data["to"], "Your new password", "Follow the link within ten minutes."), job.key, conn)


@shop.handler("invoice", model=Invoice, queue=BILLING, max_attempts=8, timeout=30, transactional=True)
async def invoice(order: Invoice, conn: AsyncConnection[Any]) -> dict[str, Any]:
    """The invoice and the job's completion are committed together."""
    await asyncio.sleep(random.uniform(0.05, 0.3))  # the numbers of the tax office
    row = {"number": order.number, "customer": order.customer, "total": order.total}
    await conn.execute(shop_statement("issue_invoice"), row)
    return {"number": order.number, "total": order.total}


@shop.handler("capture_payment", queue=BILLING, backoff_base=0.5, backoff_cap=20)
async def capture_payment(data: dict[str, Any]) -> dict[str, Any]:
    """Flaky: three of ten fail, and mostly succeed when tried again."""
    await asyncio.sleep(random.uniform(0.1, 0.6))
    if random.random() < FLAKINESS:
        raise PaymentDeclined(f"the bank did not answer for card ending in {data['card']}")
    return {"captured": data["amount"]}


@shop.handler("sync_to_warehouse", queue=BILLING, max_attempts=2, backoff_base=0.2, backoff_cap=2)
def sync_to_warehouse(data: dict[str, Any]) -> None:
    """Poison: the warehouse's record lacks a field, so every attempt fails, and the job ends as a dead letter."""
    record = {"order": data["order"], "bin": None}
    time.sleep(random.uniform(0.02, 0.1))
    record["shelf"].move_to(record["bin"])


@shop.handler("resize_image", queue=IMAGES, timeout=60)
def resize_image(data: dict[str, Any]) -> dict[str, str]:
    return {"path": str(resize_picture(data["source"], data["width"]))}


@shop.handler("import_raw_picture", queue=IMAGES, max_attempts=2, backoff_base=0.5, backoff_cap=2)
def import_raw_picture(data: dict[str, Any]) -> None:
    """Now and then a broken file makes the decoder take its whole process along; the next worker tries it alone."""
    time.sleep(random.uniform(0.1, 0.4))
    if data.get("broken"):
        os.kill(os.getpid(), signal.SIGKILL)


@shop.handler("sales_report", queue=REPORTS, timeout=60)
async def sales_report(data: dict[str, Any]) -> dict[str, Any]:
    """Slow: five to fifteen seconds."""
    await asyncio.sleep(random.uniform(5, 15))
    return {"report": data["month"], "pages": random.randint(3, 40)}
