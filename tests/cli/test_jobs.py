from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.support.zoo import add_job, add_run, add_running_job, add_worker, value_of

Arrange = Callable[..., Any]


def test_enqueued_job_is_printed_by_id_and_found_again_by_its_key(cli: Cli, arrange: Arrange) -> None:
    first = cli("enqueue", "send_email", '{"to": "a@example.org"}', "--key", "welcome-1", "--queue", "mail", "-p", 7)
    second = cli("enqueue", "send_email", '{"to": "a@example.org"}', "--key", "welcome-1", "--queue", "mail", "-p", 7)

    job_id = arrange(value_of, "SELECT id FROM jobs")
    assert (first.code, first.out) == (0, f"{job_id}\n")
    assert (second.code, second.out) == (0, f"{job_id}\n")
    assert "was taken already" in second.err
    assert arrange(value_of, "SELECT queue || priority FROM jobs") == "mail7"
    conflict = cli("enqueue", "send_email", '{"to": "b"}', "--key", "welcome-1", "--queue", "mail")
    assert (conflict.code, "another payload" in conflict.err) == (1, True)


def test_data_comes_from_stdin_and_whole_numbers_stay_exact(cli: Cli, arrange: Arrange) -> None:
    answer = cli("enqueue", "count", "-", "--json", stdin='{"n": 123456789012345678901234567890}')

    assert answer.json["created"] is True
    assert arrange(value_of, "SELECT payload #>> '{data,n}' FROM jobs") == "123456789012345678901234567890"


@pytest.mark.parametrize(
    "args",
    [
        ("enqueue", "a", "{"),
        ("enqueue", "a", "NaN"),
        ("enqueue", "a", '"\\u0000"'),
        ("enqueue", ""),
        ("enqueue", "a", "--priority", "99999"),
        ("enqueue", "a", "--delay", "soon"),
        ("enqueue", "a", "--delay", "-5"),
        ("enqueue", "a", "--not-before", "2024-02-30"),
        ("enqueue", "a", "--delay", "5m", "--not-before", "2030-01-01"),
        ("enqueue", "a", "--max-attempts", "0"),
        ("enqueue", "a", "--queue", "x" * 300),
    ],
)
def test_what_cannot_be_a_job_is_a_usage_error_of_one_line(cli: Cli, arrange: Arrange, args: tuple[str, ...]) -> None:
    answer = cli(*args)

    assert answer.code == 2
    assert answer.out == ""
    assert "Traceback" not in answer.err
    assert arrange(value_of, "SELECT count(*) FROM jobs") == 0


def test_delay_and_time_are_the_databases(cli: Cli, arrange: Arrange) -> None:
    cli("enqueue", "a", "--delay", "1h30m")
    cli("enqueue", "b", "--not-before", "2100-01-01T00:00")

    # The delay counts from the statement, which comes a moment after its transaction began.
    waits = arrange(value_of, "SELECT not_before - created_at FROM jobs WHERE job_type = 'a'")
    assert timedelta(minutes=90) <= waits < timedelta(minutes=91)
    assert arrange(value_of, "SELECT not_before::text FROM jobs WHERE job_type = 'b'") == "2100-01-01 00:00:00+00"


def test_jobs_are_listed_by_state_in_the_order_they_will_run(cli: Cli, arrange: Arrange) -> None:
    low, high = arrange(add_job, priority=1), arrange(add_job, priority=9)
    arrange(add_job, due_in=timedelta(hours=1))
    arrange(add_running_job)

    assert [job["id"] for job in cli("jobs", "--status", "pending", "--json").json] == [high, low]
    assert len(cli("jobs", "--json").json) == 4
    assert len(cli("jobs", "--limit", 0, "--json").json) == 4
    assert len(cli("jobs", "list", "-n", 1, "--json").json) == 1


def test_type_that_no_worker_knows_is_said(cli: Cli, arrange: Arrange) -> None:
    arrange(add_worker, job_types=("send_email",))
    arrange(add_job, "bill")

    assert "no worker knows type bill: pass its module to pgq-core worker --app" in cli("jobs").err


def test_job_is_shown_in_every_state(cli: Cli, arrange: Arrange) -> None:
    live = arrange(add_job, data={"n": 2**70})
    done = arrange(add_job)
    arrange(add_run, done, outcome="retried", error="boom")
    arrange(value_of, "DELETE FROM jobs WHERE id = %s RETURNING 1", done)

    shown = cli("jobs", "show", live, "--json").json
    assert shown["live"]["payload"] == {"type": "send_email", "data": {"n": 2**70}}
    assert cli("jobs", "show", done, "--json").json["state"] == "retried"
    assert "boom" in cli("jobs", "show", done).out
    assert cli("jobs", "show", 987654).code == 1


def test_job_that_nobody_will_take_says_why(cli: Cli, arrange: Arrange) -> None:
    job = arrange(add_job, queue="mail")
    cli("queues", "pause", "mail")

    alone = cli("jobs", "show", job)
    assert "no worker that is alive serves queue mail\n" in alone.err
    assert "queue mail is paused: pgq-core queues resume mail\n" in alone.err
    assert cli("jobs", "show", job, "--json").json["live"]["no_worker_serves_queue"]

    arrange(add_worker, queues=("mail",))
    cli("queues", "resume", "mail")
    assert cli("jobs", "show", job).err == ""


def test_enqueued_type_that_no_worker_ever_announced_is_named(cli: Cli, arrange: Arrange) -> None:
    assert cli("enqueue", "send_emial").err == ""  # no worker ever ran: nobody can say what is known
    arrange(value_of, "INSERT INTO job_types (name) VALUES ('send_email') RETURNING 1")

    answer = cli("enqueue", "send_emial")

    assert (answer.code, answer.out.strip().isdigit()) == (0, True)
    assert answer.err == "no worker ever announced the type send_emial; did you mean send_email?\n"
    assert cli("enqueue", "send_email").err == ""


def test_data_that_is_a_file_name_is_refused_with_the_way_for_files(cli: Cli) -> None:
    answer = cli("enqueue", "send_email", "missing.json")

    assert answer.code == 2
    assert answer.err.startswith("error: the data is no JSON: ")
    assert "enqueue TYPE - < FILE" in answer.err


def test_cancel_tells_what_was_ended_and_what_was_only_asked(cli: Cli, arrange: Arrange) -> None:
    pending, running = arrange(add_job), arrange(add_running_job)

    assert cli("jobs", "cancel", pending, running).code == 2
    dry = cli("jobs", "cancel", pending, running, 987654, "--dry-run", "--json")
    assert dry.json["ids"] == [pending, running]
    answer = cli("jobs", "cancel", pending, running, 987654, "--yes", "--json")

    assert answer.code == 1
    assert [(item["id"], item["answer"]) for item in answer.json["items"]] == [
        (pending, "cancelled"),
        (running, "requested"),
        (987654, None),
    ]


def test_jobs_are_moved_and_moved_back(cli: Cli, arrange: Arrange) -> None:
    job_id = arrange(add_job, queue="a")

    assert cli("jobs", "move", job_id, "--to", "b", "--reason", "wrong one").code == 0
    assert arrange(value_of, "SELECT queue FROM jobs") == "b"
    assert cli("operations", "undo", 1).code == 0
    assert arrange(value_of, "SELECT queue FROM jobs") == "a"
    assert cli("jobs", "move", job_id, "--to", "").code == 2


def test_jobs_are_rescheduled_one_way_at_a_time(cli: Cli, arrange: Arrange) -> None:
    job_id = arrange(add_job)

    assert cli("jobs", "reschedule", job_id).code == 2
    assert cli("jobs", "reschedule", job_id, "--now", "--in", "5m").code == 2
    assert cli("jobs", "reschedule", job_id, "--in", "2h").code == 0
    assert arrange(value_of, "SELECT status FROM jobs") == "scheduled"
    assert cli("jobs", "reschedule", job_id, "--now").code == 0
    assert arrange(value_of, "SELECT status FROM jobs") == "pending"
    assert cli("jobs", "reschedule", job_id, "--at", "2100-01-01T00:00+02:00").code == 0
    assert arrange(value_of, "SELECT not_before::text FROM jobs") == "2099-12-31 22:00:00+00"


def test_ids_of_a_list_are_piped_into_a_verb(cli: Cli, arrange: Arrange) -> None:
    for _ in range(3):
        arrange(add_job, queue="a")
    ids = "\n".join(str(job["id"]) for job in json.loads(cli("jobs", "--queue", "a", "--json").out))

    assert cli("jobs", "cancel", "-", "--yes", stdin=ids).code == 0
    assert arrange(value_of, "SELECT count(*) FROM jobs") == 0
