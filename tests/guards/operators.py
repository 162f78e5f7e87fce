"""Plays about what operators do: to jobs, to dead letters, to tokens; and about enqueueing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tests.guards.play import Play
from tests.guards.registry import meets, plays, spared

LATER = datetime(2099, 1, 1, tzinfo=UTC)


def one_of_each(play: Play) -> list[int]:
    """Pending, scheduled, running, waiting."""
    return [play.job(), play.due(60), play.running(), play.job(status="waiting", waiting_for="flow")]


@plays("change_due_times")
def only_jobs_that_wait_for_their_time_get_another(play: Play) -> None:
    jobs = one_of_each(play)
    neighbour = play.job()

    assert play.ids("change_due_times", ids=jobs, due=LATER) == jobs
    assert play.values("SELECT id FROM jobs WHERE not_before = %s ORDER BY id", LATER) == jobs[:2]
    assert play.status(neighbour) == "pending"


@plays("restore_due_times")
def each_job_gets_its_own_time_back_unless_it_runs(play: Play) -> None:
    jobs = one_of_each(play)
    times = [LATER + timedelta(days=number) for number in range(4)]
    play.run("restore_due_times", ids=jobs, due=times)

    is_restored = "SELECT not_before = %s FROM jobs WHERE id = %s"
    found = [play.values(is_restored, *pair)[0] for pair in zip(times, jobs, strict=True)]
    assert found == [True, True, False, False]


@plays("move_jobs")
def only_jobs_that_do_not_run_change_their_queue(play: Play) -> None:
    jobs = one_of_each(play)
    at_home = play.job()
    play.job()
    play.database.run("CREATE TEMP TABLE written (id bigint) ON COMMIT DROP")
    play.database.run(
        "CREATE FUNCTION pg_temp.note() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO pg_temp.written VALUES (NEW.id); RETURN NEW; END $$"
    )
    play.database.run("CREATE TRIGGER noted AFTER UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION pg_temp.note()")
    play.run("move_jobs", ids=[*jobs, at_home], queues=[*(f"new {number}" for number in range(4)), "q"])

    assert play.values("SELECT queue FROM jobs ORDER BY id") == ["new 0", "new 1", "q", "q", "q", "q"]
    assert play.values("SELECT id FROM written ORDER BY id") == jobs[:2], "who is there already is not written"


@plays("purge_jobs")
def a_purge_ends_what_was_there_of_one_queue_and_status(play: Play) -> None:
    others = [
        play.job(queue="other"),
        play.due(60, queue="other"),
        play.job(queue="other", status="waiting", waiting_for="x"),
    ]
    jobs = one_of_each(play)
    newer = [play.job(), play.due(60), play.job(status="waiting", waiting_for="flow")]

    def purge(status: str) -> list[int]:
        return play.ids("purge_jobs", queue="q", status=status, max_id=jobs[-1], limit=10)

    assert [purge("pending"), purge("scheduled"), purge("waiting")] == [[jobs[0]], [jobs[1]], [jobs[3]]]
    assert play.values("SELECT id FROM jobs ORDER BY id") == sorted([jobs[2], *others, *newer])


@plays("purge_jobs")
def a_purge_goes_on_in_batches(play: Play) -> None:
    for _ in range(2):
        one_of_each(play)

    for status in ("pending", "scheduled", "waiting"):
        assert len(play.ids("purge_jobs", queue="q", status=status, max_id=99999, limit=1)) == 1


NEW = '{"type": "t", "data": 2}'


@plays("edit_dead_letter")
def only_an_unresolved_letter_is_edited_and_the_first_payload_is_kept(play: Play) -> None:
    letter, resolved, _neighbour = play.letter(1), play.letter(2, resolution="discarded"), play.letter(3)
    assert len(play.run("edit_dead_letter", dead_letter_id=letter, payload=NEW)) == 1
    assert play.run("edit_dead_letter", dead_letter_id=resolved, payload=NEW) == []
    play.run("edit_dead_letter", dead_letter_id=letter, payload='{"type": "t", "data": 3}')

    assert play.values("SELECT payload ->> 'data' FROM dead_letter_jobs ORDER BY id") == ["3", "{}", "{}"]
    assert play.values("SELECT original_payload ->> 'data' FROM dead_letter_jobs WHERE id = %s", letter) == ["{}"]


spared(
    "edit_dead_letter",
    "AND resolution IS NULL",
    "AND d.resolution IS NULL",
    because="each holds where the other is gone: one locks no letter in vain, one names the expected state",
)


@plays("restore_payload")
def an_edit_is_taken_back_only_of_an_unresolved_letter(play: Play) -> None:
    letter, resolved, _neighbour = play.letter(1), play.letter(2, resolution="replayed"), play.letter(3)
    counts = [
        play.count("restore_payload", dead_letter_id=one, payload=NEW, original_payload=None)
        for one in (letter, resolved)
    ]

    assert counts == [1, 0]
    assert play.values("SELECT id FROM dead_letter_jobs WHERE payload ->> 'data' = '2'") == [letter]


@plays("undo_resolutions")
def only_what_this_operation_resolved_is_taken_back(play: Play) -> None:
    mine = play.letter(1, resolution="discarded", resolved_by="me")
    theirs = play.letter(2, resolution="discarded", resolved_by="you")
    otherwise = play.letter(3, resolution="replayed", resolved_by="me", replayed_job_id=999)
    open_one = play.letter(4)
    neighbour = play.letter(5, resolution="discarded", resolved_by="me")
    rows = play.run("undo_resolutions", ids=[mine, theirs, otherwise, open_one], resolution="discarded", operator="me")

    said = {row["id"]: row["refusal"] for row in rows}
    again = "it has been resolved again since"
    assert said == {mine: None, theirs: again, otherwise: again, open_one: "it is unresolved already"}
    assert play.values("SELECT id FROM dead_letter_jobs WHERE resolution IS NOT NULL ORDER BY id") == [
        theirs,
        otherwise,
        neighbour,
    ]


@plays("import_dead_letters")
def a_letter_that_is_here_already_is_not_imported_again(play: Play) -> None:
    died_at = "2026-01-01T00:00:00+00:00"
    play.letter(1, died_at=died_at)
    play.job(idempotency_key="live")
    docs = [
        {
            "original_job_id": job_id,
            "died_at": when,
            "queue": "q",
            "payload": {"type": "t"},
            "last_error": "x",
            "reason": "exhausted",
            "attempts": 1,
            "max_attempts": 1,
            "priority": 0,
            "idempotency_key": key,
        }
        for job_id, when, key in (
            (1, died_at, None),
            (2, died_at, None),
            (1, "2026-01-02T00:00:00+00:00", "new"),
            (2, died_at, None),
            (3, died_at, "live"),
            (1, "2026-01-03T00:00:00+00:00", None),
        )
    ]
    rows = play.run("import_dead_letters", lines=list(range(len(docs))), docs=[json.dumps(doc) for doc in docs])

    assert [row["dead_letter_id"] is not None for row in rows] == [False, True, True, False, True, True]
    assert len({row["dead_letter_id"] for row in rows}) == 5
    assert [row["line"] for row in rows] == list(range(len(docs)))
    assert play.values("SELECT key FROM job_keys WHERE expires_at = 'infinity'") == ["new"]


@plays("mark_undone", "extend_operation")
def an_operation_is_undone_once_and_alone(play: Play) -> None:
    first, _second = (play.add("operations", operator="me", action="a", target="t") for _ in range(2))
    play.run("extend_operation", operation_id=first, affected=5, refused=0, undo=None)

    assert [play.count("mark_undone", operation_id=first, operator=name) for name in ("me", "you")] == [1, 0]
    assert play.values("SELECT undone_by FROM operations ORDER BY id") == ["me", None]
    assert play.values("SELECT affected FROM operations ORDER BY id") == [5, 0]


@plays("lock_operation", "lock_pool", "lock_queue", "lock_worker")
def a_lock_is_taken_of_the_named_row_only(play: Play) -> None:
    first, _ = (play.add("operations", operator="me", action="a", target="t") for _ in range(2))
    for name in ("p", "q"):
        play.add("queues", name=name)
        play.worker(name)
        for host in ("h", "i"):
            play.add("worker_pools", host=host, name=name, queues=["q"])

    assert [len(play.run("lock_operation", operation_id=first))] == [1]
    assert len(play.run("lock_pool", host="h", pool="p")) == 1
    assert len(play.run("lock_queue", queue="p")) == 1
    assert len(play.run("lock_worker", worker_id="p")) == 1


# Tokens and selections


@plays("add_api_token", "revoke_api_token", "touch_api_token")
def a_tokens_name_is_free_again_when_it_was_taken_back(play: Play) -> None:
    def add(name: str, digest: bytes) -> list[int]:
        return play.ids("add_api_token", name=name, digest=digest, scopes=["read"], operator="me", lifetime=None)

    (first,), (other,) = add("a", b"1"), add("b", b"2")
    assert add("a", b"3") == []
    assert play.ids("revoke_api_token", name="a", operator="me") == [first]
    assert play.ids("revoke_api_token", name="a", operator="you") == []
    assert len(add("a", b"4")) == 1
    assert play.values("SELECT name FROM api_tokens WHERE revoked_at IS NULL ORDER BY name") == ["a", "b"]
    assert [play.count("touch_api_token", token_id=other) for _ in range(2)] == [1, 0]
    play.database.run("UPDATE api_tokens SET last_used_at = now() - interval '2 minutes' WHERE id = %s", other)
    assert play.count("touch_api_token", token_id=other) == 1
    assert play.values("SELECT id FROM api_tokens WHERE last_used_at IS NOT NULL") == [other]


spared(
    "add_api_token", "WHERE revoked_at IS NULL", because="names the partial index; without it the statement is refused"
)


@plays("freeze_selection")
def old_selections_are_dropped_a_few_at_a_time(play: Play) -> None:
    for number in range(101):
        play.add("selections", id=f"old {number}", ids=[1], created_by="me", expires_at="2026-01-01")
    play.add("selections", id="open", ids=[1], created_by="me", expires_at="2999-01-01")
    play.run("freeze_selection", selection_id="new", ids=[1], operator="me", lifetime=timedelta(minutes=1))

    assert play.values("SELECT count(*) FROM selections WHERE id LIKE 'old%%'") == [1]
    assert play.values("SELECT id FROM selections WHERE id NOT LIKE 'old%%' ORDER BY id") == ["new", "open"]


@plays("freeze_selection")
def a_selection_that_may_be_used_is_kept(play: Play) -> None:
    play.add("selections", id="open", ids=[1], created_by="me", expires_at="2999-01-01")
    play.run("freeze_selection", selection_id="new", ids=[1], operator="me", lifetime=timedelta(minutes=1))

    assert play.values("SELECT id FROM selections ORDER BY id") == ["new", "open"]


# Where two sessions meet


@meets("change_due_times", "restore_due_times", "move_jobs")
def a_job_that_was_claimed_while_an_operator_waited_is_left_alone(play: Play) -> None:
    for name, params in (
        ("change_due_times", {"due": LATER}),
        ("restore_due_times", {"due": [LATER]}),
        ("move_jobs", {"queues": ["new"]}),
    ):
        job = play.job()
        a, b = play.cast["a"], play.cast["b"]
        a.conn.execute("BEGIN")
        a.conn.execute("UPDATE jobs SET locked_by = 'w', claim_token = 9 WHERE id = %s", (job,))
        b.start(play.by(name, ids=[job], **params))
        play.cast.wait_until_blocked(b)
        a.conn.execute("COMMIT")
        b.end()

        row = play.database.one("SELECT status, queue, not_before < now() AS is_due FROM jobs WHERE id = %s", job)
        assert row == {"status": "running", "queue": "q", "is_due": True}, name


@meets("change_due_times", "restore_due_times", "move_jobs", "undo_resolutions")
def operators_lock_their_rows_in_the_order_of_ids(play: Play) -> None:
    for name, table, params in (
        ("change_due_times", "jobs", {"due": LATER}),
        ("restore_due_times", "jobs", {"due": [LATER, LATER]}),
        ("move_jobs", "jobs", {"queues": ["new", "new"]}),
        ("undo_resolutions", "dead_letter_jobs", {"resolution": "discarded", "operator": "me"}),
    ):
        top = play.database.value(f"SELECT coalesce(max(id), 0) FROM {table}")
        high, low = top + 20, top + 10
        for number in (high, low):
            play.job(id=number) if table == "jobs" else play.letter(number, id=number)
        a, b = play.cast["a"], play.cast["b"]
        a.conn.execute("BEGIN")
        a.conn.execute(f"SELECT FROM {table} WHERE id = %s FOR UPDATE", (high,))
        b.conn.execute("BEGIN")
        b.conn.execute("SET LOCAL enable_indexscan = off")
        b.conn.execute("SET LOCAL enable_bitmapscan = off")
        b.start(play.by(name, ids=[high, low], **params))
        play.cast.wait_until_blocked(b)
        free = play.values(f"SELECT id FROM {table} WHERE id = %s FOR UPDATE SKIP LOCKED", low)
        a.conn.execute("ROLLBACK")
        b.end()
        b.conn.execute("COMMIT")

        assert free == [], name


@meets("edit_dead_letter")
def an_edit_keeps_the_payload_that_was_there_when_it_got_through(play: Play) -> None:
    letter = play.letter(1)
    a, b = play.cast["a"], play.cast["b"]
    a.conn.execute("BEGIN")
    a.conn.execute('UPDATE dead_letter_jobs SET payload = \'{"type": "t", "data": 1}\' WHERE id = %s', (letter,))
    b.start(play.by("edit_dead_letter", dead_letter_id=letter, payload=NEW))
    play.cast.wait_until_blocked(b)
    a.conn.execute("COMMIT")
    b.end()

    assert play.values("SELECT original_payload ->> 'data' FROM dead_letter_jobs") == ["1"]


@meets("undo_resolutions")
def a_letter_that_was_resolved_again_while_the_undo_waited_stays_so(play: Play) -> None:
    letter = play.letter(1, resolution="discarded", resolved_by="me")
    a, b = play.cast["a"], play.cast["b"]
    a.conn.execute("BEGIN")
    a.conn.execute("UPDATE dead_letter_jobs SET resolved_by = 'you' WHERE id = %s", (letter,))
    b.start(play.by("undo_resolutions", ids=[letter], resolution="discarded", operator="me"))
    play.cast.wait_until_blocked(b)
    a.conn.execute("COMMIT")
    b.end()

    assert play.values("SELECT resolution FROM dead_letter_jobs") == ["discarded"]


@meets("lock_operation", "lock_pool", "lock_queue", "lock_worker")
def who_looks_before_acting_keeps_others_from_acting_meanwhile(play: Play) -> None:
    operation = play.add("operations", operator="me", action="a", target="t")
    play.add("queues", name="q")
    play.worker("w")
    play.add("worker_pools", host="h", name="p", queues=["q"])
    for name, params, table in (
        ("lock_operation", {"operation_id": operation}, "operations"),
        ("lock_pool", {"host": "h", "pool": "p"}, "worker_pools"),
        ("lock_queue", {"queue": "q"}, "queues"),
        ("lock_worker", {"worker_id": "w"}, "workers"),
    ):
        a = play.cast["a"]
        a.conn.execute("BEGIN")
        a.act(play.by(name, **params))
        free = play.values(f"SELECT 1 FROM {table} FOR UPDATE SKIP LOCKED")
        a.conn.execute("ROLLBACK")

        assert free == [], name


# Enqueueing


def enqueue_params(*items: tuple[str | None, object]) -> dict[str, object]:
    """(key, data) per item."""
    none: list[object] = [None] * len(items)
    return {
        "queues": ["q"] * len(items),
        "payloads": [json.dumps({"type": "t", "data": data}) for _, data in items],
        "priorities": [0] * len(items),
        "delays": none,
        "not_befores": none,
        "keys": [key for key, _ in items],
        "max_attempts": [5] * len(items),
        "timeouts": none,
        "trace_contexts": none,
    }


@plays("enqueue_jobs")
def a_batch_makes_one_job_per_key_and_tells_what_became_of_each_item(play: Play) -> None:
    held = play.job(idempotency_key="held")
    play.add("job_keys", key="over", job_id=77, queue="q", payload_hash="x", expires_at="2026-01-01")
    play.add("job_keys", key="open", job_id=78, queue="q", payload_hash="x", expires_at="2999-01-01")
    rows = play.run(
        "enqueue_jobs",
        **enqueue_params(
            (None, 1),
            ("a", 1),
            ("a", 1),
            ("a", 2),
            (None, 1),
            ("held", {}),
            ("held", 2),
            ("over", 1),
            ("open", 1),
            ("b", 2),
            ("b", 1),
        ),
    )

    assert [row["created"] for row in rows] == [True, True, False, False, True, False, False, True, False, True, False]
    assert [row["conflict"] for row in rows] == [
        False,
        False,
        False,
        True,
        False,
        False,
        True,
        False,
        True,
        False,
        True,
    ]
    assert rows[1]["id"] == rows[2]["id"] == rows[3]["id"]
    assert rows[5]["id"] == held
    assert rows[8]["id"] == 78
    assert len({row["id"] for row in rows}) == 7
    assert [row["position"] for row in rows] == list(range(1, 12))
    assert play.database.value("SELECT count(*) FROM jobs") == 6


@plays("enqueue_jobs")
def a_key_whose_window_is_over_names_no_holder(play: Play) -> None:
    """While another session takes it over, its job cannot be seen yet; the old one must not be named."""
    play.add("job_keys", key="over", job_id=77, queue="q", payload_hash="x", expires_at="2026-01-01")
    play.database.run("ALTER TABLE jobs DISABLE TRIGGER USER")
    play.database.run("CREATE FUNCTION pg_temp.skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
    play.database.run("CREATE TRIGGER skipped BEFORE INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION pg_temp.skip()")
    (row,) = play.run("enqueue_jobs", **enqueue_params(("over", 1)))

    assert row["id"] is None


spared("enqueue_jobs", "LIMIT 1", because="a key is one row")
spared(
    "enqueue_jobs",
    "WHERE key IS NULL",
    because="the unique index would refuse the later items of a key as well; this spares them the trigger and an id",
)
spared(
    "enqueue_jobs",
    "WHERE idempotency_key IS NULL",
    because="rows without a key are numbered first: the others stand behind them",
)
spared(
    "enqueue_jobs",
    "WHERE idempotency_key IS NOT NULL",
    because="rows without a key have no position, which is asked at the end",
)
spared("enqueue_jobs", "AND k.new_id IS NULL", because="a new id goes before the holder's: this spares the look-up")
