"""Plays about the functions of the schema: verbs for callers of plain SQL, and the triggers of keys and states."""

from __future__ import annotations

from typing import Any

import psycopg

from tests.guards.play import Play
from tests.guards.registry import plays as plays_statement
from tests.guards.registry import spared

T = '{"type": "t", "data": {}}'


def plays(*functions: str) -> Any:
    return plays_statement(*(f"function {name}" for name in functions))


def value(play: Play, expression: str, *params: object) -> Any:
    return play.database.value(f"SELECT {expression}", *params)


def refused(play: Play, statement: str, *params: object, sqlstate: str) -> None:
    said: str | None = None
    try:
        with play.database.connection().transaction():
            play.database.run(statement, *params)
    except psycopg.Error as error:
        said = error.sqlstate
    assert said == sqlstate, f"{statement} was answered with {said}"


def key_row(play: Play, key: str) -> tuple[int, str] | None:
    rows = play.database.all(
        "SELECT job_id, CASE WHEN expires_at IS NULL THEN 'live' WHEN expires_at = 'infinity' THEN 'held' "
        "WHEN expires_at > now() THEN 'kept' ELSE 'over' END AS state FROM job_keys WHERE key = %s",
        key,
    )
    return (rows[0]["job_id"], rows[0]["state"]) if rows else None


def keys(play: Play, **rows: tuple[int, str | None]) -> None:
    for name, (job_id, expires_at) in rows.items():
        play.add("job_keys", key=name, job_id=job_id, queue="q", payload_hash="x", expires_at=expires_at)


# Verbs


@plays("enqueue")
def enqueue_takes_announced_defaults_and_tells_who_has_the_key(play: Play) -> None:
    play.add("job_types", name="other", queue="wrong", max_attempts=9)
    play.add("job_types", name="t", queue="q", max_attempts=2)
    keys(play, other=(900, None), another=(901, "2999-01-01"))
    value(play, "enqueue('t')")
    assert play.database.value("SELECT count(*) FROM jobs") == 1, "without a key each call makes one job"
    first = value(play, "enqueue('t', idempotency_key => 'k')")
    row = play.database.one("SELECT queue, max_attempts FROM jobs WHERE id = %s", first)
    assert row == {"queue": "q", "max_attempts": 2}
    assert value(play, "enqueue('t', idempotency_key => 'k')") == first
    refused(play, "SELECT enqueue('t', '{\"a\": 1}', idempotency_key => 'k')", sqlstate="PQ002")
    play.database.run("DELETE FROM jobs")
    assert value(play, "enqueue('t', idempotency_key => 'k')") == first, "its window is open"
    play.database.run("UPDATE job_keys SET expires_at = now() - interval '1 s' WHERE key = 'k'")
    second = value(play, "enqueue('t', idempotency_key => 'k')")
    assert second != first
    assert key_row(play, "k") == (second, "live")


spared(
    "function enqueue",
    "AND (k.expires_at IS NULL OR k.expires_at > now())",
    "OR k.expires_at > now()",
    "IF FOUND",
    because="a key that changes hands while the call runs: played by several sessions in tests/schema/test_keys.py",
)


@plays("replay_dead_letter", "replay_dead_letters", "replay")
def a_replay_makes_one_job_of_an_open_letter_whose_key_is_free(play: Play) -> None:
    keyed = play.letter(900, idempotency_key="k")
    keys(play, k=(900, "infinity"), other=(901, "infinity"), live=(902, None))
    taken = play.letter(903, idempotency_key="taken")
    holder = play.job(idempotency_key="taken")
    plain, resolved = play.letter(904), play.letter(905, resolution="discarded")
    bystander = play.letter(906)
    rows = play.database.all(
        "SELECT * FROM replay_dead_letters(%s, 'me', interval '60 s')", [keyed, taken, plain, resolved]
    )

    said = {row["dead_letter_id"]: row["refusal"] for row in rows}
    assert said[keyed] is None
    assert said[plain] is None
    assert str(holder) in str(said[taken])
    assert "already discarded" in str(said[resolved])
    new = {row["dead_letter_id"]: row["job_id"] for row in rows}
    assert key_row(play, "k") == (new[keyed], "live")
    assert key_row(play, "other") == (901, "held")
    assert key_row(play, "live") == (902, "live")
    assert play.values("SELECT id FROM dead_letter_jobs WHERE resolution = 'replayed' ORDER BY id") == [keyed, plain]
    assert play.values("SELECT replayed_job_id FROM dead_letter_jobs WHERE id = %s", keyed) == [new[keyed]]
    assert play.values("SELECT replayed_job_id FROM dead_letter_jobs WHERE id = %s", plain) == [new[plain]]
    due = "SELECT round(extract(epoch FROM not_before - now()))::int FROM jobs WHERE id = %s"
    assert [play.values(due, new[letter])[0] for letter in (keyed, plain)] == [0, 15]

    job = value(play, "replay(%s)", bystander)
    assert play.values("SELECT replayed_from FROM jobs WHERE id = %s", job) == [bystander]
    refused(play, "SELECT replay(%s)", bystander, sqlstate="PQ004")
    refused(play, "SELECT replay(99999)", sqlstate="PQ004")


@plays("replay_dead_letter")
def a_letter_whose_key_another_job_has_meanwhile_is_refused_and_loses_nothing(play: Play) -> None:
    letter = play.letter(900, idempotency_key="k")
    keys(play, k=(901, None))
    (row,) = play.database.all("SELECT * FROM replay_dead_letters(%s)", [letter])

    assert row["refusal"] is None or "taken" in row["refusal"]
    assert key_row(play, "k") in {(901, "live"), (row["job_id"], "live")}


spared(
    "function replay_dead_letter",
    "IF letter.idempotency_key IS NOT NULL",
    "AND expires_at IS NOT NULL",
    because="a comparison with no key finds nothing; a live key is found before, and the index decides when it is new",
)
spared(
    "function replay_dead_letter",
    "IF holder IS NOT NULL",
    because="the insert is refused by the index as well, in words that do not name the holder",
)


@plays("discard_dead_letters", "discard")
def a_discard_resolves_open_letters_only(play: Play) -> None:
    first, second, resolved = play.letter(1), play.letter(2), play.letter(3, resolution="replayed")
    bystander = play.letter(4)
    rows = play.database.all("SELECT * FROM discard_dead_letters(%s, 'me')", [first, second, resolved])

    assert [row["refusal"] is None for row in rows] == [True, True, False]
    assert play.values("SELECT id FROM dead_letter_jobs WHERE resolved_by = 'me' ORDER BY id") == [first, second]
    play.database.run("SELECT discard(%s)", bystander)
    assert play.values("SELECT resolution FROM dead_letter_jobs WHERE id = %s", bystander) == ["discarded"]
    refused(play, "SELECT discard(%s)", bystander, sqlstate="PQ004")
    refused(play, "SELECT discard(99999)", sqlstate="PQ004")


@plays("undo_resolutions")
def an_undo_takes_back_what_nobody_has_acted_on(play: Play) -> None:
    fresh, claimed, handed_back = play.job(), play.running(), play.running()
    play.database.run("UPDATE jobs SET locked_by = NULL, locked_at = NULL WHERE id = %s", handed_back)
    letters = [
        play.letter(number, resolution="replayed", replayed_job_id=job)
        for number, job in enumerate((fresh, claimed, handed_back), start=901)
    ]
    discarded, still_open = play.letter(904, resolution="discarded"), play.letter(905)
    bystander, neighbour = play.letter(906, resolution="discarded"), play.job()
    rows = play.database.all("SELECT * FROM undo_resolutions(%s)", [*letters, discarded, still_open])

    assert [row["refusal"] is None for row in rows] == [True, False, False, True, False]
    assert play.values("SELECT id FROM jobs ORDER BY id") == sorted([claimed, handed_back, neighbour])
    assert play.values("SELECT id FROM dead_letter_jobs WHERE resolution IS NOT NULL ORDER BY id") == [
        *letters[1:],
        bystander,
    ]


spared(
    "function undo_resolutions",
    "AND status <> 'running'",
    because="a job that runs was claimed, and has a token; it names the state that the delete expects",
)


@plays("cancel", "close_unrun_job")
def a_cancel_ends_what_does_not_run_and_asks_what_does(play: Play) -> None:
    idle, running, neighbour, busy = play.job(), play.running(), play.job(), play.running()

    assert value(play, "cancel(%s)", idle) == "cancelled"
    assert value(play, "cancel(%s)", running) == "requested"
    assert value(play, "cancel(%s)", 99999) == "not found"
    assert play.values("SELECT id FROM jobs ORDER BY id") == [running, neighbour, busy]
    assert play.values("SELECT id FROM jobs WHERE cancel_requested") == [running]
    assert play.values("SELECT job_id FROM job_runs") == [idle]


@plays("close_unrun_job")
def a_day_without_a_place_for_runs_gets_one(play: Play) -> None:
    play.database.run("SELECT 1")
    today = value(play, "to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")
    play.database.run(f"DROP TABLE job_runs_{today}")

    assert value(play, "cancel(%s)", play.job()) == "cancelled"


spared(
    "function cancel",
    "AND j.status = 'running'",
    "AND j.status <> 'running'",
    because="the row was locked in this state just before; each write names the state it expects",
)


@plays("pause", "resume")
def a_pause_and_its_end_are_of_one_queue(play: Play) -> None:
    for name in ("q", "r", "q"):
        play.database.run("SELECT pause(%s, 'why', 'me')", name)
    play.database.run("SELECT resume('q')")

    assert play.values("SELECT name FROM queues WHERE paused") == ["r"]


spared(
    "function resume",
    "WHERE EXISTS (SELECT FROM worker_waits WHERE waiting)",
    "WHERE waiting",
    because="whether a hint is sent: a notification too many does no harm",
)
for spare in ("function resume", "release_jobs", "promote_due_jobs"):
    spared(
        spare,
        "AND pg_notification_queue_usage() < 0.5",
        because="seen only where the server's queue is full, see catalogue/test_full_notifications.py",
    )


# Keys


@plays("jobs_take_key", "jobs_check_key")
def a_key_is_taken_when_it_is_free_or_its_window_is_over(play: Play) -> None:
    keys(play, over=(900, "2026-01-01"), open=(901, "2999-01-01"), other=(902, "2026-01-01"))
    new = play.job(idempotency_key="new")
    over = play.job(idempotency_key="over")
    insert = "INSERT INTO jobs (queue, payload, idempotency_key) VALUES ('q', %s, %s) RETURNING id"
    skipped = play.database.all(insert, T, "open")

    assert key_row(play, "new") == (new, "live")
    assert key_row(play, "over") == (over, "live")
    assert skipped == []
    assert key_row(play, "open") == (901, "kept")
    assert key_row(play, "other") == (902, "over")
    refused(play, insert, T, "new", sqlstate="23505")


@plays("jobs_take_key", "jobs_check_key")
def a_key_that_is_changed_by_hand_moves_with_the_job(play: Play) -> None:
    keys(play, open=(901, "2999-01-01"), stray=(903, None))
    job, neighbour = play.job(idempotency_key="a"), play.job(idempotency_key="b")
    change = "UPDATE jobs SET idempotency_key = %s WHERE id = %s"
    refused(play, change, "open", job, sqlstate="23505")
    refused(play, change, "b", job, sqlstate="23505")
    refused(play, change, "x" * 501, job, sqlstate="23514")
    play.database.run(change, "c", job)
    assert (key_row(play, "a"), key_row(play, "b"), key_row(play, "c")) == (None, (neighbour, "live"), (job, "live"))
    play.database.run(change, None, job)
    assert (key_row(play, "c"), key_row(play, "stray")) == (None, (903, "live"))


@plays("jobs_take_key")
def a_change_of_a_key_leaves_the_key_of_an_ended_job_alone(play: Play) -> None:
    job = play.job(idempotency_key="a")
    play.database.run("UPDATE job_keys SET job_id = 900 WHERE key = 'a'")
    play.database.run("UPDATE jobs SET idempotency_key = 'b' WHERE id = %s", job)
    assert key_row(play, "a") == (900, "live")

    play.database.run("UPDATE job_keys SET expires_at = '2999-01-01' WHERE key = 'b'")
    play.database.run("UPDATE jobs SET idempotency_key = 'c' WHERE id = %s", job)
    assert key_row(play, "b") == (job, "kept")


@plays("jobs_check_key")
def a_key_whose_holder_is_gone_without_a_trace_is_taken_over(play: Play) -> None:
    keys(play, lost=(900, None), other=(901, None))
    job = play.job(idempotency_key="lost")

    assert key_row(play, "lost") == (job, "live")
    assert key_row(play, "other") == (901, "live")


ONE_KEY = "a job has one live key, and its id is asked as well; this finds the row"
spared("function jobs_end_key", "WHERE key = OLD.idempotency_key", because=ONE_KEY)
spared("function jobs_take_key", "WHERE key = OLD.idempotency_key", because=ONE_KEY)
spared("function jobs_check_key", "WHERE key = NEW.idempotency_key #2", because=ONE_KEY)
spared(
    "function jobs_check_key",
    "IF holder.job_id = NEW.id",
    because="the rest would write the same row again: this keeps it from being locked",
)
spared(
    "function jobs_take_key",
    "IF holder_expires_at IS NULL",
    because="a live key is not taken over further down either: this keeps it from being tried",
)
spared(
    "function jobs_take_key",
    "IF FOUND",
    "IF NOT FOUND",
    "AND expires_at <= now()",
    because="another session was faster: played in tests/interleavings and tests/schema/test_keys.py",
)
spared(
    "function jobs_check_key",
    "AND (expires_at IS NULL OR expires_at <= now())",
    "OR expires_at <= now()",
    "AND job_id = holder.job_id",
    "IF NOT FOUND",
    because="a holder that ended while the insert waited: played by several sessions in tests/interleavings",
)


@plays("jobs_end_key")
def the_window_of_a_key_begins_when_its_job_ends(play: Play) -> None:
    ended, died = play.job(idempotency_key="ended"), play.job(idempotency_key="died")
    moved, neighbour = play.job(idempotency_key="moved"), play.job(idempotency_key="neighbour")
    kept = play.job(idempotency_key="kept")
    play.letter(died, idempotency_key="died")
    play.letter(ended, idempotency_key="ended", resolution="discarded")
    play.letter(neighbour)
    play.database.run("UPDATE job_keys SET job_id = 900 WHERE key = 'moved'")
    play.database.run("UPDATE job_keys SET expires_at = '2999-01-01' WHERE key = 'kept'")
    play.database.run("DELETE FROM jobs WHERE id = ANY (%s)", [ended, died, moved, kept])

    assert key_row(play, "ended") == (ended, "kept")
    assert key_row(play, "died") == (died, "held")
    assert key_row(play, "moved") == (900, "live")
    assert key_row(play, "neighbour") == (neighbour, "live")
    assert play.values("SELECT key FROM job_keys WHERE expires_at = '2999-01-01'") == ["kept"]


@plays("dead_letters_end_key", "dead_letters_hold_key")
def a_letter_holds_its_key_until_it_is_resolved(play: Play) -> None:
    keys(play, a=(900, "infinity"), handed_on=(777, "infinity"), other=(900, "infinity"), live=(778, "2999-01-01"))
    keys(play, own=(903, "2999-01-01"), bystander=(1, "2998-01-01"), second=(2, "2998-01-01"))
    letter = play.letter(900, idempotency_key="a")
    handed = play.letter(901, idempotency_key="handed_on")
    late, own = play.letter(902, idempotency_key="live"), play.letter(903, idempotency_key="own")
    play.database.run("SELECT discard_dead_letters(%s)", [letter, handed, late, own])
    assert key_row(play, "a") == (900, "kept")
    assert (key_row(play, "handed_on"), key_row(play, "other")) == ((777, "held"), (900, "held"))
    assert play.values("SELECT key FROM job_keys WHERE expires_at = '2999-01-01' ORDER BY key") == ["live", "own"]

    play.database.run("DELETE FROM job_keys WHERE key = 'live'")
    play.database.run("SELECT undo_resolutions(%s)", [letter, handed, late])
    assert (key_row(play, "a"), key_row(play, "live")) == ((900, "held"), (902, "held"))
    assert key_row(play, "handed_on") == (777, "held"), "another letter holds it"
    assert key_row(play, "other") == (900, "held")


@plays("dead_letters_hold_key")
def an_unresolved_letter_takes_no_key_from_a_live_job(play: Play) -> None:
    letter = play.letter(900, idempotency_key="k", resolution="discarded")
    job = play.job(idempotency_key="k")
    play.database.run("SELECT undo_resolutions(%s)", [letter])

    assert key_row(play, "k") == (job, "live")


@plays("end_all_keys")
def truncated_tables_free_their_own_keys(play: Play) -> None:
    keys(play, live=(1, None), held=(2, "infinity"), kept=(3, "2999-01-01"))
    play.database.run("TRUNCATE jobs")
    assert [key_row(play, key) for key in ("live", "held")] == [(1, "kept"), (2, "held")]
    play.database.run("UPDATE job_keys SET expires_at = NULL WHERE key = 'live'")
    play.database.run("TRUNCATE dead_letter_jobs")

    assert [key_row(play, key) for key in ("live", "held")] == [(1, "live"), (2, "kept")]
    assert play.values("SELECT key FROM job_keys WHERE expires_at = '2999-01-01'") == ["kept"]


@plays("workers_keep_late_writes")
def late_writes_outlive_their_worker(play: Play) -> None:
    for number in (2, 3):
        play.worker(f"w{number}", late_writes=number)
    play.database.run("DELETE FROM workers")

    assert play.values("SELECT value FROM counters WHERE name = 'late_writes'") == [5]


# States


@plays("jobs_derive_status")
def a_state_follows_from_owner_and_time(play: Play) -> None:
    running, unclaimed = play.running(), play.job(locked_by="w")
    later, held = play.due(60), play.job(status="waiting", waiting_for="flow")
    assert [play.status(job) for job in (running, unclaimed, later, held)] == [
        "running",
        "pending",
        "scheduled",
        "waiting",
    ]
    assert play.values("SELECT locked_at IS NOT NULL FROM jobs ORDER BY id") == [True, False, False, False]
    claim = "UPDATE jobs SET locked_by = 'new', claim_token = %s WHERE id = %s"
    refused(play, "UPDATE jobs SET locked_by = 'old' WHERE id = %s", unclaimed, sqlstate="PQ001")
    play.database.run(claim, 5, unclaimed)
    play.database.run(claim, 6, running)
    play.database.run("UPDATE jobs SET not_before = now() + interval '1 h' WHERE id = %s", held)
    assert [play.status(job) for job in (unclaimed, running, held)] == ["running", "running", "waiting"]
    play.database.run("UPDATE jobs SET locked_by = NULL WHERE id = %s", running)
    play.database.run("UPDATE jobs SET not_before = now() - interval '1 s' WHERE id = %s", later)
    assert [play.status(job) for job in (running, later)] == ["pending", "pending"]
    assert play.values("SELECT locked_at FROM jobs WHERE id = %s", running) == [None]


@plays("jobs_derive_status")
def a_job_that_waits_for_nothing_does_not_wait(play: Play) -> None:
    assert play.status(play.job(status="waiting")) == "pending"
    assert play.status(play.job(status="scheduled", waiting_for="flow")) == "pending"
    assert play.status(play.job(status="waiting", waiting_for="flow", locked_by="w", claim_token=1)) == "running"
