from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support.zoo import add_dead_letter, add_job, value_of

Arrange = Callable[..., Any]


def count(arrange: Arrange, where: str) -> int:
    return int(arrange(value_of, f"SELECT count(*) FROM dead_letter_jobs WHERE {where}"))


def test_bare_dead_lists_the_unresolved_newest_first(cli: Cli, arrange: Arrange) -> None:
    ids = [arrange(add_dead_letter, error=f"ValueError: {n}") for n in range(3)]

    answer = cli("dead", "--json")

    assert [letter["id"] for letter in answer.json] == ids[::-1]
    assert cli("dead", "list", "--json").json == answer.json
    assert "ValueError: 2" in cli("dead").out


def test_json_of_a_list_has_these_fields_and_no_payload(cli: Cli, arrange: Arrange) -> None:
    arrange(add_dead_letter)

    (letter,) = cli("dead", "--json").json

    assert set(letter) == {
        *(
            "id",
            "original_job_id",
            "queue",
            "job_type",
            "reason",
            "error_class",
            "last_error",
            "attempts",
            "max_attempts",
        ),
        *("fingerprint", "last_worker", "died_at", "resolution", "resolved_at", "resolved_by", "replayed_job_id"),
        "replayed_from",
    }
    assert letter["died_at"].endswith("+00:00")


def test_list_pages_through_more_than_one_page_when_all_are_wanted(
    cli: Cli, arrange: Arrange, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pgq_core.cli import dead

    monkeypatch.setattr(dead, "PAGE", 2)
    for _ in range(5):
        arrange(add_dead_letter)

    assert len(cli("dead", "--limit", 0, "--json").json) == 5
    assert len(cli("dead", "--limit", 3, "--json").json) == 3


def test_filters_narrow_the_list(cli: Cli, arrange: Arrange) -> None:
    arrange(add_dead_letter, queue="a", fingerprint="f1")
    other = arrange(add_dead_letter, queue="b", error="TimeoutError: slow", reason="timeout", fingerprint=None)

    for filters in (
        ("--queue", "b"),
        ("--reason", "timeout"),
        ("--text", "SLOW"),
        ("--fingerprint", "none"),
        ("--queue", "b", "--newer-than", "1h"),
    ):
        assert [letter["id"] for letter in cli("dead", *filters, "--json").json] == [other]
    assert cli("dead", "--older-than", "1h", "--json").json == []
    assert cli("dead", "--reason", "bad luck").code == 2


def test_groups_count_the_kinds_of_failure(cli: Cli, arrange: Arrange) -> None:
    for _ in range(2):
        arrange(add_dead_letter, fingerprint="f1")

    (group,) = cli("dead", "groups", "--json").json

    assert (group["fingerprint"], group["count"]) == ("f1", {"value": 2, "exact": True})
    assert "f1" in cli("dead", "groups").out


def test_show_prints_the_payload_as_it_is_to_the_digit(cli: Cli, arrange: Arrange) -> None:
    letter = arrange(add_dead_letter, data={"n": 1})
    exact = '{"n": 12345678901234567890.10, "type": "send_email"}'
    arrange(value_of, "UPDATE dead_letter_jobs SET payload = %s::jsonb RETURNING 1", exact)

    answer = cli("dead", "show", letter, "--json")

    assert exact in answer.out
    assert answer.json["payload_size"] == len(exact)
    assert exact in cli("dead", "show", letter).out


def test_show_cuts_a_large_payload_and_says_so(cli: Cli, arrange: Arrange) -> None:
    letter = arrange(add_dead_letter, data={"text": "x" * 5000})

    answer = cli("dead", "show", letter, "--payload-limit", 100, "--json")

    assert answer.json["payload"] is None
    assert len(answer.json["payload_text"]) == 100
    assert "bytes in all" in cli("dead", "show", letter, "--payload-limit", 100).out


def test_attempts_are_shown_with_times_like_every_other_table(cli: Cli, arrange: Arrange) -> None:
    letter = arrange(add_dead_letter)
    began = "2026-11-29T10:00:00.123456+00:00"
    entry = {"attempt": 1, "outcome": "dead", "worker": "w1", "started_at": began, "error": "2026-11-29"}
    arrange(value_of, "UPDATE dead_letter_jobs SET attempt_log = %s::jsonb RETURNING 1", json.dumps([entry]))

    lines = cli("dead", "show", letter).out.splitlines()

    (row,) = [line.split() for line in lines if " w1 " in line]
    assert row == ["1", "dead", "w1", "2026-11-29", "10:00:00Z", "-", "2026-11-29"]


def test_unknown_letter_is_one_line_and_exit_code_1(cli: Cli) -> None:
    answer = cli("dead", "show", 987654)

    assert (answer.code, answer.out, answer.err) == (1, "", "error: there is no dead letter 987654\n")


def test_one_id_is_replayed_without_a_question_and_its_job_is_printed(cli: Cli, arrange: Arrange) -> None:
    letter = arrange(add_dead_letter)

    answer = cli("dead", "replay", letter, "--because", "fixed")

    job_id = arrange(value_of, "SELECT id FROM jobs")
    assert (answer.code, answer.out) == (0, f"{job_id}\n")
    assert "replayed: 1 (operation 1)" in answer.err
    assert arrange(value_of, "SELECT operator || ' ' || reason FROM operations") == "ops@test fixed"


def test_bulk_without_a_terminal_and_without_yes_changes_nothing(cli: Cli, arrange: Arrange) -> None:
    letters = [arrange(add_dead_letter) for _ in range(2)]

    for args in (("replay", *letters), ("replay", "--all"), ("discard", "--queue", "default"), ("discard", "-")):
        answer = cli("dead", *args, stdin="\n".join(map(str, letters)))
        assert answer.code == 2
        assert "add --yes" in answer.err
    assert count(arrange, "resolution IS NULL") == 2


def test_all_has_to_be_said(cli: Cli, arrange: Arrange) -> None:
    arrange(add_dead_letter)

    assert cli("dead", "discard", "--yes").code == 2
    assert cli("dead", "discard", "--yes", "--all", "--queue", "a").code == 2
    assert count(arrange, "resolution IS NULL") == 1
    assert cli("dead", "discard", "--yes", "--all").code == 0
    assert count(arrange, "resolution IS NULL") == 0


def test_dry_run_shows_what_would_be_done_and_changes_nothing(cli: Cli, arrange: Arrange) -> None:
    wanted = [arrange(add_dead_letter, fingerprint="f1") for _ in range(3)]
    arrange(add_dead_letter, fingerprint="f2")

    answer = cli("dead", "replay", "--fingerprint", "f1", "--dry-run", "--json")

    assert answer.code == 0
    assert answer.json["count"] == 3
    assert sorted(answer.json["ids"]) == wanted
    assert len(answer.json["sample"]) == 3
    assert "3 would be discarded; nothing was changed" in cli("dead", "discard", "-f", "f1", "--dry-run").err
    assert count(arrange, "resolution IS NULL") == 4
    assert arrange(value_of, "SELECT count(*) FROM operations") == 0


def test_dry_run_of_ids_leaves_out_what_would_be_refused(cli: Cli, arrange: Arrange) -> None:
    gone, alive = arrange(add_dead_letter), arrange(add_dead_letter)
    cli("dead", "discard", gone)

    answer = cli("dead", "replay", gone, alive, 987654, "--dry-run", "--json")

    assert answer.json["ids"] == [alive]
    assert "already discarded by ops@test" in answer.err
    assert "there is no dead letter 987654" in answer.err


def test_partly_refused_bulk_ends_with_1_and_names_each_refusal(cli: Cli, arrange: Arrange) -> None:
    keyed = arrange(add_dead_letter, key="k")
    plain = arrange(add_dead_letter)
    arrange(value_of, "UPDATE job_keys SET expires_at = '-infinity' RETURNING 1")
    holder = arrange(add_job, key="k")

    answer = cli("dead", "replay", keyed, plain, 987654, "--yes", "--json")

    assert answer.code == 1
    assert (answer.json["done"], answer.json["refused"]) == (1, 2)
    refusals = {item["id"]: item["refusal"] for item in answer.json["items"]}
    assert refusals[keyed] == f"its idempotency key is held by live job {holder}"
    assert f"{keyed}: its idempotency key is held by live job {holder}" in answer.err


def test_ids_come_from_stdin_too(cli: Cli, arrange: Arrange) -> None:
    letters = [arrange(add_dead_letter) for _ in range(3)]

    answer = cli("dead", "discard", "-", "--yes", stdin="\n".join(map(str, letters)) + "\n")

    assert answer.code == 0
    assert count(arrange, "resolution = 'discarded'") == 3


@pytest.mark.parametrize("bad", ["x", "1.5", "-1", "0", "9223372036854775808", "\u0661"])
def test_what_is_no_id_is_a_usage_error(cli: Cli, bad: str) -> None:
    assert cli("dead", "discard", "--yes", "--", bad).code == 2


def test_replay_with_another_payload_keeps_the_first_one(cli: Cli, arrange: Arrange, tmp_path: Path) -> None:
    letter = arrange(add_dead_letter, data={"a": 1})
    payload = tmp_path / "payload.json"
    payload.write_text('{"type": "send_email", "data": {"a": 2}}')

    answer = cli("dead", "replay", letter, "--payload", payload)

    assert answer.code == 0
    assert arrange(value_of, "SELECT payload -> 'data' ->> 'a' FROM jobs") == "2"
    assert arrange(value_of, "SELECT original_payload -> 'data' ->> 'a' FROM dead_letter_jobs") == "1"
    payload.write_text("{")
    assert cli("dead", "replay", letter, "--payload", payload).code == 2
    assert cli("dead", "replay", letter, "--payload", tmp_path / "missing").code == 2


def test_spread_is_given_as_a_span(cli: Cli, arrange: Arrange) -> None:
    letters = [arrange(add_dead_letter) for _ in range(4)]

    assert cli("dead", "replay", *letters, "--yes", "--spread", "1h").code == 0

    assert arrange(value_of, "SELECT count(*) FROM jobs WHERE not_before > now() + interval '14 minutes'") == 3
    assert cli("dead", "replay", *letters, "--yes", "--spread", "soon").code == 2


def test_discard_is_taken_back_by_its_operation(cli: Cli, arrange: Arrange) -> None:
    letter = arrange(add_dead_letter)
    cli("dead", "discard", letter)

    assert "would undo operation 1: discard of 1 dead letter by ops@test" in cli("dead", "undo", 1, "--dry-run").err
    assert cli("dead", "undo", 1).code == 0
    assert count(arrange, "resolution IS NULL") == 1
    again = cli("dead", "undo", 1)
    assert (again.code, "was undone already by ops@test" in again.err) == (1, True)
    assert cli("dead", "undo", 987654).code == 1


def test_exported_letters_are_imported_once_and_to_the_digit(cli: Cli, arrange: Arrange, tmp_path: Path) -> None:
    letter = arrange(add_dead_letter, key="k", error="line one\nline two\u2028three")
    exact = '{"data": {"n": 0.30000000000000004440892098500626}, "type": "send_email"}'
    arrange(value_of, "UPDATE dead_letter_jobs SET payload = %s::jsonb RETURNING 1", exact)
    file = tmp_path / "dead.ndjson"

    assert cli("dead", "export", "--all", "-o", file).code == 0
    assert cli("dead", "export", "--all", "-o", file).code == 2
    assert exact in file.read_text()
    repeated = cli("dead", "import", file, "--yes")
    assert (repeated.code, "it is here already" in repeated.err) == (1, True)
    arrange(value_of, "WITH gone AS (DELETE FROM dead_letter_jobs RETURNING 1) SELECT count(*) FROM gone")
    arrange(value_of, "WITH gone AS (DELETE FROM job_keys RETURNING 1) SELECT count(*) FROM gone")
    assert cli("dead", "import", file, "--dry-run").code == 0
    assert count(arrange, "true") == 0
    assert cli("dead", "import", file, "--yes").code == 0

    assert arrange(value_of, "SELECT payload::text FROM dead_jobs") == exact
    assert arrange(value_of, "SELECT last_error FROM dead_jobs") == "line one\nline two\u2028three"
    assert arrange(value_of, "SELECT note FROM dead_letter_jobs") == f"imported: was dead letter {letter}"
    assert arrange(value_of, "SELECT expires_at = 'infinity' FROM job_keys WHERE key = 'k'") is True


def test_lines_that_are_no_letters_are_refused_by_number_and_the_rest_goes_in(cli: Cli, arrange: Arrange) -> None:
    arrange(add_dead_letter)
    good = json.loads(cli("dead", "export", "--all").out)
    lines = [
        "{",
        "[]",
        json.dumps({**good, "queue": ""}),
        json.dumps({**good, "payload": {"type": "a", "data": "\u0000"}}),
        json.dumps({**good, "died_at": "infinity"}),
        json.dumps({**good, "attempts": 2**40}),
        json.dumps({**good, "original_job_id": 4711}),
    ]

    answer = cli("dead", "import", "-", "--yes", "--json", stdin="\n".join(lines))

    assert answer.code == 1
    assert [item["id"] for item in answer.json["items"] if item["refusal"] is None] == [7]
    assert arrange(value_of, "SELECT count(*) FROM dead_letter_jobs WHERE original_job_id = 4711") == 1
