"""Secrets in payloads, results, errors, tracebacks and logs stay out of everything that is shown or copied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from pgq_core.domain.masking import MASKED, Mask
from pgq_core.domain.snapshot import JobRecord, RunDetail
from pgq_tui.app import PgqApp
from pgq_tui.backend.masked import MaskedBackend
from pgq_tui.pictures import Shop, ShopBackend, busy_shop
from pgq_tui.screens.session import Session
from pgq_tui.view_model.glyphs import UNICODE
from pgq_tui.widgets.row_table import RowTable
from tests.console.stage import screen_text, settle, shows

SECRET = "hunter2"
PAYLOAD = f'{{"type": "x", "data": {{"user": "ann", "password": "{SECRET}", "auth": {{"apiKey": ["{SECRET}"]}}}}}}'
WORDS = f"ValueError: login(user='ann', password='{SECRET}') at postgresql://app:{SECRET}@db/jobs"
TRACEBACK = f'Traceback (most recent call last):\n  File "a.py", line 1, in run\n    token = "{SECRET}"\n{WORDS}'
SEEN = "user='ann'"


class Telltale(ShopBackend):
    """Every text that jobs and workers can write holds the secret, under a name that tells."""

    def __init__(self) -> None:
        super().__init__(telltale_shop())

    async def run(self, run_id: int) -> RunDetail | None:
        found = await super().run(run_id)
        return found and replace(found, traceback=TRACEBACK, result_text=PAYLOAD, result_size=len(PAYLOAD))

    async def job(self, job_id: int) -> JobRecord | None:
        found = await super().job(job_id)
        return found and replace(found, live=found.live and replace(found.live, payload_text=PAYLOAD))


def telltale_shop() -> Shop:
    shop = busy_shop()
    shop.queues = [replace(queue, last_error=WORDS) for queue in shop.queues]
    shop.pools = [replace(pool, state_detail=WORDS) for pool in shop.pools]
    shop.workers = [replace(worker, exit_reason=WORDS) for worker in shop.workers]
    shop.output = {worker.id: f'{WORDS}\n{{"event": "x", "token": "{SECRET}"}}' for worker in shop.workers}
    shop.jobs = [replace(job, last_error=WORDS) for job in shop.jobs]
    shop.runs = [replace(run, error=WORDS) for run in shop.runs]
    log = [{"attempt": 1, "outcome": "retried", "error": WORDS, "password": SECRET}]
    shop.letters = [
        replace(
            letter,
            view=replace(letter.view, last_error=WORDS),
            detail=replace(
                letter.detail,
                traceback=TRACEBACK,
                payload_text=PAYLOAD,
                payload_size=len(PAYLOAD),
                original_payload_text=PAYLOAD,
                attempt_log=log,
                note=f"try with password={SECRET}",
            ),
        )
        for letter in shop.letters
    ]
    return shop


def masked_console() -> PgqApp:
    session = Session(MaskedBackend(Telltale(), Mask()), interval=5.0)
    return PgqApp(session, theme="pgq-dark", glyphs=UNICODE)


async def copied(pilot: Pilot[Any]) -> str:
    pilot.app._clipboard = ""
    await pilot.press("y")
    await settle(pilot, until=lambda: bool(pilot.app.clipboard))
    return pilot.app.clipboard


def row(pilot: Pilot[Any], prefix: str) -> None:
    table = pilot.app.screen.query_one(RowTable)
    table.go_to(next(key for key in table.row_keys if key.startswith(prefix)))


async def test_a_secret_never_stands_on_a_screen_or_in_the_clipboard() -> None:
    seen: list[str] = []

    async with masked_console().run_test(size=(160, 90)) as pilot:

        async def look(*words: str) -> None:
            await shows(pilot, *words)
            seen.append(screen_text(pilot.app))

        await look("Needs attention")
        await pilot.press("2")
        await look("queue emails", SEEN)
        seen.append(await copied(pilot))
        await pilot.press("3")
        await look("job 8812", MASKED)
        seen.append(await copied(pilot))
        await pilot.press("4")
        await look("Running now", SEEN)
        seen.append(await copied(pilot))
        await pilot.press("enter")
        await look("run 50399", "result", MASKED)
        await pilot.press("escape", "5")
        await look("dead letter 1093", "payload before it was edited", MASKED, "note")
        seen.append(await copied(pilot))
        await pilot.press("R")
        await look("It goes back to its queue", SEEN)
        await pilot.press("escape", "V")
        await look("Kinds of failure", SEEN)
        seen.append(await copied(pilot))
        await pilot.press("6")
        await look("pool images", SEEN)
        row(pilot, "worker shop-1-mail")
        await look("worker shop-1-mail", "last output")
        seen.append(await copied(pilot))
        await pilot.press("l")
        await look("Output of shop-1-mail")

    assert [text for text in seen if SECRET in text] == []
    assert all(seen)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("User(password=SecretStr('a, b'), n=2)", f"User(password={MASKED}, n=2)"),
        ("Cookie: a=b; c=d\nnext", f"Cookie: {MASKED}\nnext"),
        ("API key: abc rest", f"API key: {MASKED} rest"),
        ('{"token": {"a": "b"}, "n": 1}', f'{{"token": {MASKED}, "n": 1}}'),
        ("{'secret': 'cut off", f"{{'secret': '{MASKED}'"),
        ("?token=abc&x=1", f"?token={MASKED}&x=1"),
        ("KeyError: 'token', Token expired: 2024, secretary: ann", None),
        ("[" * 10_000 + "password=" + "(" * 10_000, "[" * 10_000 + f"password={MASKED}"),
    ],
    ids=["call", "header", "two words", "nested", "cut off", "address", "nothing secret", "brackets"],
)
def test_words_of_programs_are_masked_by_their_sense(text: str, shown: str | None) -> None:
    assert Mask().prose(text) == (text if shown is None else shown)


def test_configured_keys_are_masked_in_words_too() -> None:
    assert Mask(("iban",)).prose("iban=DE12 password=x") == f"iban={MASKED} password=x"
    assert Mask(()).prose("password=x") == "password=x"
