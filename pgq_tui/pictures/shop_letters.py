"""The dead letters of the shop: four kinds of failure, each with its story."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pgq_core.domain.snapshot import DeadLetterDetail, DeadLetterView

_FIRST_LETTER = 1_040
_FIRST_JOB = 874_000


@dataclass(frozen=True, slots=True)
class _Failure:
    """One kind of failure, and how many letters it left."""

    fingerprint: str
    queue: str
    job_type: str
    reason: str
    error_class: str | None
    error: str
    traceback: str | None
    payload: str
    count: int
    minutes: float
    """Age of the newest letter."""
    worker: str


@dataclass(frozen=True, slots=True)
class ShopLetter:
    """A row of the list and what the detail shows of it."""

    view: DeadLetterView
    detail: DeadLetterDetail


def shop_letters(now: datetime) -> list[ShopLetter]:
    """All letters, newest first."""
    letters = [_letter(failure, number, now) for failure in _FAILURES for number in range(failure.count)]
    letters.sort(key=lambda letter: letter.view.died_at, reverse=True)
    return [_numbered(letter, _FIRST_LETTER + len(letters) - index) for index, letter in enumerate(letters)]


def _numbered(letter: ShopLetter, number: int) -> ShopLetter:
    view = replace(letter.view, id=number, original_job_id=_FIRST_JOB + number * 3)
    return ShopLetter(view, replace(letter.detail, letter=view))


def _letter(failure: _Failure, number: int, now: datetime) -> ShopLetter:
    died_at = now - timedelta(minutes=failure.minutes + number * number * 0.17)
    view = DeadLetterView(
        id=0,
        original_job_id=0,
        queue=failure.queue,
        job_type=failure.job_type,
        reason=failure.reason,
        error_class=failure.error_class,
        last_error=failure.error.format(n=number, host=f"mx{1 + number % 3}.acme.example"),
        attempts=3 if failure.reason == "crash_loop" else 5,
        max_attempts=5,
        fingerprint=failure.fingerprint,
        last_worker=failure.worker,
        died_at=died_at,
    )
    payload = failure.payload.replace("NUMBER", str(5_517 + number * 31))
    return ShopLetter(
        view,
        DeadLetterDetail(
            letter=view,
            priority=0,
            idempotency_key=f"order-{5_517 + number * 31}",
            created_at=died_at - timedelta(minutes=5),
            traceback=failure.traceback,
            payload_text=payload,
            payload_size=len(payload),
            note=None,
            attempt_log=[
                {
                    "attempt": attempt,
                    "started_at": (died_at - timedelta(seconds=4 + 40 * (5 - attempt))).isoformat(),
                    "finished_at": (died_at - timedelta(seconds=40 * (5 - attempt))).isoformat(),
                    "outcome": "dead" if attempt == view.attempts else "retried",
                    "worker_id": failure.worker,
                    "error": view.last_error,
                }
                for attempt in range(1, view.attempts + 1)
            ],
        ),
    )


_SMTP_TRACEBACK = """\
Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/pgq_core/worker/executor.py", line 88, in _call
    return await handler(*arguments)
  File "/srv/shop/mail/confirmations.py", line 31, in send_order_confirmation
    with connect(data["to"]) as smtp:
  File "/srv/shop/mail/smtp.py", line 88, in connect
    return smtplib.SMTP(host, 25, timeout=5)
  File "/usr/lib/python3.12/smtplib.py", line 255, in __init__
    (code, msg) = self.connect(host, port)
  File "/usr/lib/python3.12/smtplib.py", line 343, in connect
    (code, msg) = self.getreply()
  File "/usr/lib/python3.12/smtplib.py", line 405, in getreply
    raise SMTPServerDisconnected("Connection unexpectedly closed")
smtplib.SMTPServerDisconnected: Connection unexpectedly closed
"""
_KEY_TRACEBACK = """\
Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/pgq_core/worker/executor.py", line 88, in _call
    return await handler(*arguments)
  File "/srv/shop/billing/invoices.py", line 57, in make_invoice
    tax_id = customer["tax_id"]
KeyError: 'tax_id'
"""

_FAILURES = (
    _Failure(
        "3fa2c81e",
        "emails",
        "send_order_confirmation",
        "exhausted",
        "SMTPServerDisconnected",
        "SMTPServerDisconnected: Connection unexpectedly closed by {host}:25",
        _SMTP_TRACEBACK,
        '{"type": "send_order_confirmation", "data": {"order": NUMBER, "to": "lin@example.org", "locale": null,'
        ' "items": [{"sku": "mug-07", "count": 2}, {"sku": "tea-11", "count": 1}]}}',
        31,
        0.4,
        "shop-1-mail-5b0e77d1",
    ),
    _Failure(
        "91c0d4b7",
        "invoices",
        "make_invoice",
        "exhausted",
        "KeyError",
        "KeyError: 'tax_id'",
        _KEY_TRACEBACK,
        '{"type": "make_invoice", "data": {"order": NUMBER, "customer": {"id": 9912, "name": "Lin"}, "total": "9.90"}}',
        14,
        10.2,
        "shop-1-shop-07aa51de",
    ),
    _Failure(
        "c4a9117e",
        "emails",
        "send_password_reset",
        "non_retryable",
        "InvalidAddress",
        "InvalidAddress: no mailbox in 'user{n}@'",
        None,
        '{"type": "send_password_reset", "data": {"user": NUMBER, "to": "user@"}}',
        5,
        96,
        "shop-1-mail-c83311f7",
    ),
    _Failure(
        "0b18e6aa",
        "images",
        "resize_image",
        "crash_loop",
        None,
        "killed by SIGKILL (out of memory) 3 times",
        None,
        '{"type": "resize_image", "data": {"path": "uploads/NUMBER.tiff", "sizes": [64, 256, 1024]}}',
        3,
        3.5,
        "shop-1-images-90d2be04",
    ),
)
