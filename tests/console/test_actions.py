"""What keys do: on exactly what was shown, only after the right question, and with a sentence about the result."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot
from typer.main import get_command

from pgq_core.cli.dead import app as dead_letters_cli
from pgq_core.domain.audit import Audit, AuditRule
from pgq_core.errors import DatabaseUnavailable
from pgq_tui.pictures import busy_shop
from pgq_tui.widgets.choice_dialog import ChoiceDialog
from pgq_tui.widgets.confirm_dialog import ConfirmDialog
from pgq_tui.widgets.dialog import DEAD_SECONDS, Dialog
from pgq_tui.widgets.input_dialog import InputDialog
from pgq_tui.widgets.row_table import RowTable
from tests.console.stage import FakeBackend, console, screen_lines, screen_text, settle, shows

SIZE = (120, 36)


async def armed(pilot: Pilot[Any], dialog: type[Dialog[Any]] = ConfirmDialog) -> None:
    """A dialog is open, and the moment in which it hears nothing is over."""
    await settle(pilot, until=lambda: isinstance(pilot.app.screen, dialog))
    await pilot.pause(DEAD_SECONDS + 0.02)


async def at_dead_letters(pilot: Pilot[Any]) -> None:
    await pilot.press("5")
    await shows(pilot, "Dead letters 53", "dead letter 1093")


async def filtered(pilot: Pilot[Any], words: str) -> None:
    """The filter line, with these words added to what it holds."""
    await pilot.press("slash")
    pilot.app.screen.query_one("PromptInput").value += words
    await pilot.press("enter")


async def test_replay_asks_and_acts_on_the_letter_under_the_cursor() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("down", "R")
        await armed(pilot)
        await pilot.press("y")

        await shows(pilot, "replayed 1 as job 901092", "Dead letters 52")
        assert backend.called("replay") == [((1092,),)]


async def test_a_confirmed_act_is_about_what_was_shown_when_its_key_was_pressed() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("space", "space", "D")
        await armed(pilot)
        # Between the key and the answer a newer letter arrives on top and one of the chosen is replayed elsewhere.
        newest = backend.shop.letters[0]
        backend.shop.letters.insert(0, replace(newest, view=replace(newest.view, id=2_000)))
        other = backend.shop.letters[2]
        backend.shop.letters[2] = replace(other, view=replace(other.view, resolution="replayed", resolved_by="ops"))
        await pilot.pause(0.3)
        await pilot.press("2", "enter")

        await shows(pilot, "discarded 1 · refused 1 (already replayed by ops)")
        assert backend.called("discard") == [((1093, 1092),)]


@pytest.mark.parametrize("key", ["R", "D"])
async def test_enter_and_escape_cancel_and_the_opening_key_never_confirms(key: str) -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        for answer in ("enter", "escape", "n"):
            await pilot.press(key)
            await armed(pilot)
            await pilot.press(key)
            assert isinstance(pilot.app.screen, ConfirmDialog)
            await pilot.press(answer)
            await settle(pilot, until=lambda: not isinstance(pilot.app.screen, ConfirmDialog))

        assert not backend.called("replay")
        assert not backend.called("discard")


async def test_a_confirmation_that_comes_too_fast_is_not_heard() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("R")
        await settle(pilot, until=lambda: isinstance(pilot.app.screen, ConfirmDialog))
        pilot.app.screen._clock = lambda: pilot.app.screen._opened_at + DEAD_SECONDS / 2
        await pilot.press("y")

        assert isinstance(pilot.app.screen, ConfirmDialog)
        assert not backend.called("replay")


async def test_discarding_several_needs_their_number_typed() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("a", "D")
        await armed(pilot)
        await shows(pilot, "53 dead letters are given up", "type 53 to confirm")
        await pilot.press("y")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        await pilot.press("backspace", "5", "3", "enter")

        await shows(pilot, "discarded 53", "no dead letters")
        assert len(backend.called("discard")[0][0]) == 53


async def test_a_discard_is_taken_back_by_z() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("D")
        await armed(pilot)
        await pilot.press("y")
        await shows(pilot, "Dead letters 52")

        await pilot.press("z")

        await shows(pilot, "took back 1", "Dead letters 53")
        await pilot.press("z")
        await shows(pilot, "nothing was done in this session")


async def test_replaying_a_kind_of_failure_takes_all_its_letters() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("V")
        await shows(pilot, "Kinds of failure 4", "3fa2c81e", "31")
        await pilot.press("down", "R")
        await armed(pilot)
        await shows(pilot, "14 dead letters go back", "KeyError: 'tax_id'", "and 6 more", "invoices is paused")
        await pilot.press("y")

        await shows(pilot, "replayed 14", "Kinds of failure 3")


async def test_marking_all_reaches_beyond_the_page() -> None:
    shop = busy_shop()
    first = shop.letters[0]
    shop.letters = [replace(first, view=replace(first.view, id=number)) for number in range(500, 0, -1)]
    backend = FakeBackend(shop)

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("5")
        await shows(pilot, "Dead letters 500")
        await pilot.press("A")
        await shows(pilot, "500 marked")
        await pilot.press("R")
        await armed(pilot)

        await shows(pilot, "500 dead letters go back", "and 492 more", "type 500 to confirm")


async def test_older_pages_are_a_key_away() -> None:
    shop = busy_shop()
    first = shop.letters[0]
    shop.letters = [replace(first, view=replace(first.view, id=number)) for number in range(500, 0, -1)]

    async with console(FakeBackend(shop)).run_test(size=SIZE) as pilot:
        await pilot.press("5")
        await shows(pilot, "dead letter 500")
        await pilot.press("right_square_bracket")
        await shows(pilot, "page 2")
        assert "300" in pilot.app.screen.query_one(RowTable).row_keys
        await pilot.press("left_square_bracket")

        await settle(pilot, until=lambda: "500" in pilot.app.screen.query_one(RowTable).row_keys)


async def test_a_filter_narrows_and_escape_clears_it() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await filtered(pilot, "queue:images")
        await shows(pilot, "Dead letters 3", "/ queue:images", "crash_loop")
        await filtered(pilot, " nothing like it")
        await shows(pilot, "nothing matches queue:images nothing like it", "esc clears")

        await pilot.press("escape")

        await shows(pilot, "Dead letters 53")


async def test_letters_typed_into_a_filter_are_no_keys() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("slash", "R", "D", "q", "p", "A", "backspace", "escape")
        await pilot.pause(0.1)

        assert pilot.app.is_running
        assert not pilot.app.screen.query_one(RowTable).marks
        assert not backend.called("preview_dead_letters")


async def test_pausing_asks_for_a_reason_and_resuming_does_not() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("2")
        await shows(pilot, "queue emails")
        await pilot.press("p")
        await settle(pilot, until=lambda: isinstance(pilot.app.screen, InputDialog))
        await pilot.pause(DEAD_SECONDS + 0.02)
        pilot.app.screen.query_one("#input-field").value = "smtp down"
        await pilot.press("enter")
        await shows(pilot, "pause emails: paused", 'paused: "smtp down"')

        await pilot.press("p")

        await shows(pilot, "resume emails: resumed")
        assert backend.called("pause") == [("emails", "smtp down")]
        assert backend.called("resume") == [("emails",)]


async def at_audit_of_emails(pilot: Pilot[Any]) -> None:
    await pilot.press("2")
    await shows(pilot, "queue emails")
    await pilot.press("A")
    await armed(pilot, ChoiceDialog)


async def test_keeping_fewer_runs_of_a_queue_says_what_is_no_longer_kept_and_asks() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_audit_of_emails(pilot)
        await shows(pilot, "Now it keeps all runs")
        await pilot.press("f")
        await armed(pilot)
        await shows(pilot, "no plain success of emails will leave a row", "is unknown once it has ended")
        assert not backend.called("set_audit")
        await pilot.press("A")
        assert isinstance(pilot.app.screen, ConfirmDialog)
        await pilot.press("y")

        await shows(pilot, "audit emails: keeps failures only", "runs kept")
        assert backend.called("set_audit") == [("emails", AuditRule(Audit.FAILURES))]


async def test_a_sample_asks_for_its_share_and_explains_a_wrong_one() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_audit_of_emails(pilot)
        await pilot.press("s")
        await armed(pilot, InputDialog)
        pilot.app.screen.query_one("#input-field").value = "5"
        await pilot.press("enter")
        await shows(pilot, "above 0 % and up to 100 %")
        pilot.app.screen.query_one("#input-field").value = "5 %"
        await pilot.press("enter")
        await armed(pilot)
        await shows(pilot, "only 5 % of the plain successes of emails")
        await pilot.press("y")

        await shows(pilot, "audit emails: keeps failures and 5 % of successes")
        assert backend.called("set_audit") == [("emails", AuditRule(Audit.SAMPLE, 0.05))]


async def test_keeping_more_runs_of_a_queue_is_not_asked_about() -> None:
    backend = FakeBackend()
    backend.shop.queues = [replace(queue, audit=Audit.SAMPLE, audit_sample=0.1) for queue in backend.shop.queues]

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_audit_of_emails(pilot)
        await pilot.press("a")

        await shows(pilot, "audit emails: keeps all runs")
        assert backend.called("set_audit") == [("emails", AuditRule())]


@pytest.mark.parametrize("way_out", [["escape"], ["enter"], ["s", "escape"], ["f", "escape"], ["f", "enter"]])
async def test_what_a_queue_keeps_stays_unless_it_is_meant(way_out: list[str]) -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_audit_of_emails(pilot)
        for key in way_out:
            before = pilot.app.screen
            await pilot.press(key)
            await settle(pilot, until=lambda before=before: pilot.app.screen is not before)

        await settle(pilot, until=lambda: not isinstance(pilot.app.screen, Dialog))
        assert not backend.called("set_audit")


async def test_plus_and_minus_scale_the_selected_pool_at_once() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")
        pilot.app.screen.query_one(RowTable).go_to("pool shop-1 mail")
        await shows(pilot, "pool mail")
        await pilot.press("plus", "plus", "minus")

        await shows(pilot, "mail: wants 3 workers", "2/3")
        assert backend.called("scale_by") == [("shop-1", "mail", 1), ("shop-1", "mail", 1), ("shop-1", "mail", -1)]


@pytest.mark.parametrize(
    ("is_stale", "why"),
    [(True, "no supervisor runs on shop-1"), (False, "the supervisor on shop-1 does not know this pool")],
)
async def test_a_pool_that_nobody_keeps_says_that_nothing_will_start(is_stale: bool, why: str) -> None:
    backend = FakeBackend()
    backend.shop.pools = [replace(pool, has_supervisor=False) for pool in backend.shop.pools]
    backend.shop.supervisors = [replace(one, is_stale=is_stale) for one in backend.shop.supervisors]

    app = console(backend)

    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images", "no supervisor runs" if is_stale else "supervised on shop-1")
        await pilot.press("plus")

        await shows(pilot, "+1 images: wants 3 workers, 2 before; "[:50])
        said = [entry.result for entry in app.session.journal.entries]
        assert said == [f"wants 3 workers, 2 before; {why}, nothing will start until one does"]


async def test_a_pool_at_its_limit_says_so() -> None:
    backend = FakeBackend()
    backend.shop.pools = [replace(pool, maximum=pool.wanted) for pool in backend.shop.pools]

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")
        await pilot.press("plus")

        await shows(pilot, "refused: pool images has between 0 and 2 workers")


async def test_the_last_worker_of_a_pool_is_asked_about() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")
        pilot.app.screen.query_one(RowTable).go_to("pool shop-1 shop")
        await shows(pilot, "pool shop")
        await pilot.press("minus")
        await armed(pilot)
        await shows(pilot, "will have no worker")
        await pilot.press("escape")
        await pilot.pause(0.1)

        assert not backend.called("scale_by")


@pytest.mark.parametrize(("key", "verb"), [("D", "drain_worker"), ("R", "restart_worker")])
async def test_draining_and_restarting_a_worker_ask_first(key: str, verb: str) -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")
        pilot.app.screen.query_one(RowTable).go_to("worker shop-1-mail-5b0e77d1")
        await shows(pilot, "worker shop-1-mail-5b0e77d1")
        await pilot.press(key)
        await armed(pilot)
        await shows(pilot, "10 running jobs")
        await pilot.press("y")

        await shows(pilot, "it was asked to")
        assert backend.called(verb) == [("shop-1-mail-5b0e77d1",)]


async def test_the_log_of_a_worker_is_shown() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")
        pilot.app.screen.query_one(RowTable).go_to("worker shop-1-mail-5b0e77d1")
        await shows(pilot, "worker shop-1-mail-5b0e77d1")

        await pilot.press("l")

        await shows(pilot, "Output of shop-1-mail-5b0e77d1", "421 4.7.0 try again later")


async def test_cancelling_a_job_says_whether_it_is_final() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("3")
        await shows(pilot, "job 881209")
        await pilot.press("X")
        await armed(pilot)
        await pilot.press("y")
        await shows(pilot, "cancel job 881209: cancelled")

        await pilot.press("4")
        await shows(pilot, "Running now 9")
        pilot.app.screen.query_one("#running").focus()
        await pilot.press("X")
        await armed(pilot)
        await pilot.press("y")

        await shows(pilot, "cancel job 881000: its worker was asked to stop")
        assert backend.called("cancel") == [([881209],), ([881000],)]


async def test_runs_open_with_all_that_is_known() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await shows(pilot, "880999")

        await pilot.press("enter")

        await shows(pilot, "run 50399", "outcome", "succeeded", '"sent": true')


async def test_the_tail_pauses_counts_and_shows_failures_alone() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await shows(pilot, "follow", "400 lines")
        await pilot.press("space")
        await shows(pilot, "paused")
        last = backend.shop.runs[-1]
        backend.shop.runs += [
            replace(last, id=last.id + 1, job_id=990_001),
            replace(last, id=last.id + 2, job_id=990_002),
        ]
        await shows(pilot, "+2 new")
        assert "990002" not in screen_text(pilot.app)
        await pilot.press("G")
        await shows(pilot, "990002", "follow")

        await pilot.press("L")

        await shows(pilot, "only runs that did not succeed", "KeyError: 'tax_id'")
        assert "succeeded" not in "\n".join(screen_lines(pilot.app)[14:-3])


async def test_runs_are_filtered_where_they_are_read() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await shows(pilot, "400 lines")
        await filtered(pilot, "state:dead")

        await shows(pilot, "24 lines", "/ state:dead")
        assert backend.called("latest_runs")[-1][1].outcomes == ("dead",)


async def test_a_filter_that_means_nothing_says_why_and_can_be_mended() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await pilot.press("4")
        await shows(pilot, "400 lines")
        await filtered(pilot, "state:purple")

        await settle(pilot, until=lambda: pilot.app.screen.query_one("#prompt").is_open)
        await pilot.press("escape")
        await shows(pilot, "state:purple is none of")


async def test_a_lost_answer_is_said_to_be_lost_and_nothing_is_repeated() -> None:
    backend = FakeBackend()

    async with console(backend, interval=30.0).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("R")
        await armed(pilot)
        backend.fault = DatabaseUnavailable("server closed the connection unexpectedly")
        await pilot.press("y")

        await shows(pilot, "it may or may not have happened")
        assert len(backend.called("replay")) == 1


async def test_nothing_can_be_changed_while_the_database_is_away() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        backend.fault = DatabaseUnavailable("connection refused")
        await shows(pilot, "database lost")
        await pilot.press("R")
        await pilot.pause(0.1)
        assert not isinstance(pilot.app.screen, ConfirmDialog)

        await pilot.press("colon", *"replay", "enter")

        await shows(pilot, "nothing can be changed while the database is away")


async def test_what_was_done_stands_in_the_journal() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await pilot.press("6")
        await shows(pilot, "pool images")
        await pilot.press("plus")
        await shows(pilot, "+1 images: wants 3 workers")

        await pilot.press("at")

        await shows(pilot, "Done in this session", "+1 images: wants 3 workers")


async def test_the_window_of_the_dashboard_widens_and_narrows() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await shows(pilot, "Throughput/s · 15m")
        await pilot.press("right_curly_bracket")
        await shows(pilot, "Throughput/s · 1h")
        await pilot.press("left_curly_bracket", "left_curly_bracket")

        await shows(pilot, "Throughput/s · 5m")
        await settle(pilot, until=lambda: backend.called("overview")[-1][0].total_seconds() == 300)


async def test_scaling_on_the_dashboard_is_about_the_pool_of_the_row_that_is_looked_at() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=(160, 45)) as pilot:
        await shows(pilot, "✓ live", "emails")
        queues = pilot.app.screen.query_one("#queues", RowTable)
        queues.go_to("emails")
        await shows(pilot, "+ more mail")
        await pilot.press("plus", "plus")
        await shows(pilot, "+1 mail: wants 4 workers, 3 before")

        queues.go_to("invoices")
        backend.shop.pools.append(replace(backend.shop.pools[1], name="mail2", queues=("invoices",)))
        await settle(pilot, until=lambda: "+ more" not in screen_text(pilot.app))
        await pilot.press("plus")

        await shows(pilot, "invoices is served by shop, mail2", "choose one")
        assert backend.called("scale_by") == [("shop-1", "mail", 1), ("shop-1", "mail", 1)]


async def test_marks_from_before_an_outage_are_looked_through_when_it_is_over() -> None:
    backend = FakeBackend()

    async with console(backend).run_test(size=SIZE) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("space", "space", "space")
        await shows(pilot, "3 letters marked")
        backend.fault = DatabaseUnavailable("connection refused")
        await shows(pilot, "3 letters marked before the outage")
        first = backend.shop.letters[0]
        backend.shop.letters[0] = replace(first, view=replace(first.view, resolution="replayed", resolved_by="ops"))

        backend.fault = None
        await pilot.press("r")

        await shows(pilot, "2 letters marked", "1 mark taken away")
        assert "before the outage" not in screen_text(pilot.app)
        assert pilot.app.screen.query_one(RowTable).marks == {"1092", "1091"}


async def test_queues_and_workers_are_narrowed_by_words_from_the_dashboard_too() -> None:
    async with console(FakeBackend()).run_test(size=SIZE) as pilot:
        await shows(pilot, "✓ live", "/ find queue")
        await filtered(pilot, "paused")
        await shows(pilot, "Queues 1 of", "/ paused", "queue invoices")
        await pilot.press("escape")
        await shows(pilot, "emails", "queue invoices")

        await pilot.press("6")
        await shows(pilot, "pool images")
        await filtered(pilot, "crashed")
        await shows(pilot, "90d2be04", "/ crashed")
        assert "5b0e77d1" not in screen_text(pilot.app)
        await filtered(pilot, " nothing like it")

        await shows(pilot, "nothing matches crashed nothing like it")


async def test_queues_are_sorted_by_another_column_and_say_so() -> None:
    async with console(FakeBackend()).run_test(size=(160, 45)) as pilot:
        await pilot.press("2")
        await shows(pilot, "queue emails")
        table = pilot.app.screen.query_one(RowTable)
        by_name = sorted(table.row_keys)
        await pilot.press("greater_than_sign", "greater_than_sign")
        await shows(pilot, "OLDEST▼", "sorted by age of the oldest job, most first")
        assert table.row_keys[0] == "imports"
        await pilot.press("I")
        await shows(pilot, "OLDEST▲")
        assert table.row_keys[-1] == "imports"

        await pilot.press("less_than_sign", "less_than_sign", "I")

        await shows(pilot, "QUEUE▼", "from Z to A")
        assert table.row_keys == by_name[::-1]


@pytest.mark.parametrize("screen", ["1", "6"])
async def test_without_any_pool_the_scaling_keys_say_where_one_is_defined(screen: str) -> None:
    shop = busy_shop()
    shop.pools.clear()

    async with console(FakeBackend(shop)).run_test(size=(80, 24)) as pilot:
        await pilot.press(screen)
        await shows(pilot, f"[{screen}", "live")
        await pilot.press("plus")

        await shows(pilot, "no pool is defined: add one to pools.toml, pgq-tui supervise reads it")


async def test_the_question_before_a_replay_says_how_to_send_another_payload() -> None:
    async with console(FakeBackend()).run_test(size=(80, 24)) as pilot:
        await at_dead_letters(pilot)
        await pilot.press("R")

        await shows(pilot, "payload and key stay", "Another payload: pgq-core dead replay 1093 --payload FILE")


def test_the_command_for_another_payload_is_one() -> None:
    replay = get_command(dead_letters_cli).commands["replay"]  # type: ignore[attr-defined]  # it is a group

    assert any("--payload" in parameter.opts for parameter in replay.params)
