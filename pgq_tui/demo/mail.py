"""Sending a mail: to an SMTP host where one is set, else into a table in the transaction of the job."""

from __future__ import annotations

import asyncio
import os
import smtplib
from dataclasses import dataclass
from email.message import EmailMessage
from random import Random
from typing import Any

from psycopg import AsyncConnection

from pgq_tui.demo.statements import shop_statement

SENDER = "shop@example.org"

random = Random()  # noqa: S311 - how long another server takes


@dataclass(frozen=True, slots=True)
class Mail:
    recipient: str
    subject: str
    body: str


async def deliver(mail: Mail, key: str, conn: AsyncConnection[Any]) -> None:
    """At least once by SMTP (the key as Message-ID tells a second one), exactly once in the outbox."""
    host = os.environ.get("SMTP_HOST")
    if host:
        await asyncio.to_thread(_send, host, int(os.environ.get("SMTP_PORT", "25")), mail, key)
        return
    await asyncio.sleep(random.uniform(0.02, 0.15))  # the time a mail server would take
    await conn.execute(
        shop_statement("put_into_outbox"),
        {"job_key": key, "recipient": mail.recipient, "subject": mail.subject, "body": mail.body},
    )


def _send(host: str, port: int, mail: Mail, key: str) -> None:
    message = EmailMessage()
    message["From"] = SENDER
    message["To"] = mail.recipient
    message["Subject"] = mail.subject
    message["Message-ID"] = f"<{key}@{SENDER.partition('@')[2]}>"
    message.set_content(mail.body)
    with smtplib.SMTP(host, port, timeout=10) as server:
        server.send_message(message)
