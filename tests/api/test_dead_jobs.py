"""Dead letters over HTTP: list, group, look, requeue, discard, undo; one by one and many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from tests.api.rows import bury
from tests.api.server import faulty_fields, is_problem
from tests.support.queue_database import QueueDatabase


def ids(page: dict[str, Any]) -> list[int]:
    return [letter["id"] for letter in page["items"]]


def resolutions(database: QueueDatabase) -> list[str | None]:
    return [row["resolution"] for row in database.all("SELECT resolution FROM dead_letter_jobs ORDER BY id")]


def test_pages_follow_each_other_newest_first(client: httpx.Client, database: QueueDatabase) -> None:
    letters = [bury(database) for _ in range(5)]

    first = client.get("/dead-jobs", params={"limit": 2, "total": True}).json()
    bury(database)  # dies while somebody reads on
    second = client.get("/dead-jobs", params={"limit": 2, "before": first["next"]}).json()
    third = client.get("/dead-jobs", params={"limit": 2, "before": second["next"]}).json()

    assert ids(first) + ids(second) + ids(third) == letters[::-1]
    assert first["total"] == {"value": 5, "exact": True}
    assert (second["total"], third["next"]) == (None, None)


def test_filters_narrow_the_list(client: httpx.Client, database: QueueDatabase) -> None:
    mail = bury(database, "mail", queue="mails", error="SMTPError: 50% [full]")
    bill = bury(database, "bill", queue="bills", error="KeyError: 'x'", fingerprint=None)
    client.post(f"/dead-jobs/{bury(database)}/discard")

    def found(**filters: object) -> list[int]:
        return ids(client.get("/dead-jobs", params=filters).json())  # type: ignore[arg-type]

    assert found() == [bill, mail]
    assert found(queue="mails") == found(type="mail") == found(text="50% [") == [mail]
    assert found(fingerprint="none") == found(text="keyerror") == [bill]
    assert found(reason="timeout") == found(queue="mails", type="bill") == []
    assert len(found(resolution="discarded")) == 1
    assert len(found(resolution="any")) == 3
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert found(died_after=tomorrow) == []
    assert found(died_before=tomorrow) == [bill, mail]


def test_groups_count_the_kinds_of_failure(client: httpx.Client, database: QueueDatabase) -> None:
    for _ in range(3):
        bury(database, error="SMTPError: down", fingerprint="f1")
    bury(database, error="KeyError: 'x'", fingerprint="f2")

    groups = client.get("/dead-jobs/groups").json()["groups"]

    assert [(group["error_class"], group["count"]["value"]) for group in groups] == [("SMTPError", 3), ("KeyError", 1)]


def test_a_dead_letter_shows_all_but_its_secrets(client: httpx.Client, database: QueueDatabase) -> None:
    letter = bury(database, "mail", {"to": "a", "token": "t-1", "n": 2**64}, error="ValueError: <b>no</b>")

    found = client.get(f"/dead-jobs/{letter}").json()

    assert found["payload"] == {"type": "mail", "data": {"to": "a", "token": "•••", "n": 2**64}}
    assert (found["last_error"], found["reason"]) == ("ValueError: <b>no</b>", "exhausted")
    assert found["attempt_log"][0]["outcome"] == "dead"
    assert is_problem(client.get("/dead-jobs/999999"), 404)


def test_a_payload_that_is_too_large_is_shown_by_its_beginning(client: httpx.Client, database: QueueDatabase) -> None:
    letter = bury(database, "mail", {"pwd": "k-1", "text": "x" * 1_200_000})

    found = client.get(f"/dead-jobs/{letter}").json()

    assert found["payload"] is None
    assert found["payload_bytes"] > 1_200_000
    assert '"pwd": "•••"' in found["payload_excerpt"]
    assert len(found["payload_excerpt"]) < 20_000


def test_requeue_makes_one_new_job_and_a_second_time_is_refused(client: httpx.Client, database: QueueDatabase) -> None:
    letter = bury(database, "mail", {"to": "a"}, key="k")

    done = client.post(f"/dead-jobs/{letter}/requeue", json={"reason": "smtp is back"})
    again = client.post(f"/dead-jobs/{letter}/requeue")

    assert done.status_code == 200
    row = database.job(done.json()["job_id"])
    assert row is not None
    assert (row["idempotency_key"], row["replayed_from"], row["attempts"]) == ("k", letter, 0)
    assert is_problem(again, 409)
    assert "already replayed" in again.json()["detail"]
    assert database.value("SELECT count(*) FROM jobs") == 1
    audit = database.all("SELECT operator, action, reason, affected, refused FROM operations ORDER BY id")
    assert audit[0] == {
        "operator": "ops@test",
        "action": "replay",
        "reason": "smtp is back",
        "affected": 1,
        "refused": 0,
    }


def test_requeue_is_refused_while_another_live_job_has_the_key(client: httpx.Client, database: QueueDatabase) -> None:
    letter = bury(database, "mail", key="k")
    database.run("UPDATE job_keys SET expires_at = now() WHERE key = 'k'")
    holder = client.post("/jobs", json={"type": "mail", "idempotency_key": "k"}).json()["id"]

    refused = client.post(f"/dead-jobs/{letter}/requeue")

    assert is_problem(refused, 409)
    assert f"live job {holder}" in refused.json()["detail"]


def test_discard_can_be_undone(client: httpx.Client, database: QueueDatabase) -> None:
    letter = bury(database)
    operation = client.post(f"/dead-jobs/{letter}/discard").json()["operation_id"]
    assert resolutions(database) == ["discarded"]

    undone = client.post(f"/operations/{operation}/undo")

    assert (undone.status_code, undone.json()["done"]) == (200, 1)
    assert resolutions(database) == [None]
    assert is_problem(client.post(f"/operations/{operation}/undo"), 409)
    assert is_problem(client.post("/operations/999999/undo"), 409)


@pytest.mark.parametrize("verb", ["requeue", "discard"])
def test_an_unknown_dead_letter_is_not_found(client: httpx.Client, database: QueueDatabase, verb: str) -> None:
    assert is_problem(client.post(f"/dead-jobs/999999/{verb}"), 404)
    assert database.value("SELECT count(*) FROM operations") == 0


@pytest.mark.parametrize(("verb", "resolution"), [("requeue", "replayed"), ("discard", "discarded")])
def test_what_a_preview_showed_is_exactly_what_is_done(
    client: httpx.Client, database: QueueDatabase, verb: str, resolution: str
) -> None:
    meant = [bury(database, queue="mails") for _ in range(12)]
    other = bury(database, queue="bills")

    answer = client.post(f"/dead-jobs/{verb}", json={"filter": {"queue": "mails"}, "dry_run": True}).json()
    preview = answer["preview"]
    assert (preview["count"], preview["more"], answer["result"]) == (12, False, None)
    assert [letter["id"] for letter in preview["sample"]] == meant[::-1][:10]
    assert resolutions(database) == [None] * 13
    late = bury(database, queue="mails")
    gone = client.post(f"/dead-jobs/{meant[0]}/discard")
    assert gone.status_code == 200

    result = client.post(f"/dead-jobs/{verb}", json={"selection": preview["selection"]}).json()["result"]

    assert (result["done"], result["refused"]) == (11, 1)
    assert result["refusals"][0]["id"] == meant[0]
    unresolved = database.all("SELECT id FROM dead_letter_jobs WHERE resolution IS NULL ORDER BY id")
    assert [row["id"] for row in unresolved] == [other, late]
    assert database.value("SELECT count(*) FROM dead_letter_jobs WHERE resolution = %s", resolution) >= 11
    again = client.post(f"/dead-jobs/{verb}", json={"selection": preview["selection"]}).json()["result"]
    assert (again["done"], again["refused"]) == (0, 12)


def test_ids_can_be_previewed_and_done(client: httpx.Client, database: QueueDatabase) -> None:
    letters = [bury(database) for _ in range(3)]

    preview = client.post("/dead-jobs/discard", json={"ids": [*letters, 999], "dry_run": True}).json()["preview"]
    result = client.post("/dead-jobs/discard", json={"ids": [*letters, 999]}).json()["result"]

    assert (preview["count"], len(preview["sample"])) == (4, 3)
    assert (result["done"], result["refusals"]) == (3, [{"id": 999, "refusal": "there is no dead letter 999"}])


def test_replays_can_be_spread_over_time(client: httpx.Client, database: QueueDatabase) -> None:
    for _ in range(4):
        bury(database)

    client.post("/dead-jobs/requeue", json={"filter": {}, "all": True, "spread_seconds": 400})

    states = database.all("SELECT status, count(*) AS n FROM jobs GROUP BY status ORDER BY status")
    assert states == [{"status": "pending", "n": 1}, {"status": "scheduled", "n": 3}]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": [1], "filter": {"queue": "a"}},
        {"ids": []},
        {"ids": ["1"]},
        {"ids": [0]},
        {"ids": list(range(1, 10_002))},
        {"filter": {}},
        {"filter": {"queue": "a"}, "all": True},
        {"filter": {"unknown": 1}},
        {"filter": {"text": "a\u0000b"}},
        {"ids": [1], "dry_run": "yes"},
        {"ids": [1], "reason": "a\u0000"},
        {"ids": [1], "spread_seconds": -1},
        {"ids": [2**63]},
    ],
    ids=range(14),
)
def test_a_bulk_request_says_which_ones_and_nothing_else(
    client: httpx.Client, database: QueueDatabase, body: dict[str, Any]
) -> None:
    assert faulty_fields(client.post("/dead-jobs/requeue", json=body))


def test_a_selection_that_is_unknown_or_too_old_is_not_found(client: httpx.Client, database: QueueDatabase) -> None:
    bury(database)
    preview = client.post("/dead-jobs/discard", json={"filter": {}, "all": True, "dry_run": True}).json()["preview"]
    database.run("UPDATE selections SET expires_at = now() - interval '1 second'")

    for selection in (preview["selection"], "no-such", "x" * 500):
        assert is_problem(client.post("/dead-jobs/discard", json={"selection": selection}), 404)
    client.post("/dead-jobs/discard", json={"filter": {}, "all": True, "dry_run": True})
    assert database.value("SELECT count(*) FROM selections") == 1
