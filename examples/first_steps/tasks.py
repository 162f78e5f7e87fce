"""What is done: one function per job type. Nothing here enqueues.

QUEUE=default pgq-core worker --app tasks
"""

from __future__ import annotations

from pgq_core import handler


@handler("send_email")
def send_email(data: dict[str, str]) -> None:
    # Put a real SMTP call here; job.key (ask for a parameter `job`) is the same over all attempts.
    print(f"sent an email to {data['to']}: {data.get('subject', 'no subject')}", flush=True)


@handler("resize_image")
def resize_image(data: dict[str, str]) -> dict[str, str]:
    # Where it writes to follows from the payload alone: a second run changes nothing.
    print(f"resized {data['src']} to {data['dst']}", flush=True)
    return {"path": data["dst"]}


@handler("flaky", max_attempts=3, backoff_base=0.5, backoff_cap=4)
def flaky(data: dict[str, int]) -> None:
    raise RuntimeError("simulated transient failure")
