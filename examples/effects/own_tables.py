"""The effect is in the same database: it is committed with the job's completion, or not at all."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from pgq_core import handler


@handler("transfer", transactional=True)
def transfer(data: dict[str, Any], conn: Connection[Any]) -> None:
    change = "UPDATE public.accounts SET balance = balance + %s WHERE name = %s"
    conn.execute(change, (-data["amount"], data["from"]))
    conn.execute(change, (data["amount"], data["to"]))
