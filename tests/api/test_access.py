"""Who may do what: tokens and scopes, names and origins, and how often."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from pgq_core.api.origins import Origins
from pgq_core.api.settings import ApiSettings, load_api_settings
from pgq_core.api.tokens import Scope, create_token, revoke_token
from pgq_core.database import connect
from pgq_core.errors import InvalidSettings, OperationRefused
from pgq_core.queries import Queries
from tests.api.rows import bury
from tests.api.server import ApiProcess, api_on, in_process, is_problem
from tests.support.queue_database import QueueDatabase
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def guarded(api_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiProcess]:
    with api_on(api_dsn, tmp_path_factory.mktemp("api"), "--require-tokens") as server:
        yield server


def made(dsn: str, name: str, *scopes: Scope, lifetime: timedelta | None = None) -> str:
    async def make() -> str:
        async with await connect(dsn, application_name="test") as conn:
            token = await create_token(
                conn, Queries("pgq_core"), name=name, scopes=scopes, operator="ops@test", lifetime=lifetime
            )
            return token.secret

    return asyncio.run(make())


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_without_a_token_nothing_but_the_probes_answers(guarded: ApiProcess, database: QueueDatabase) -> None:
    with httpx.Client(verify=False, base_url=guarded.url) as client:
        for method, path in (("GET", "/jobs/1"), ("POST", "/jobs"), ("GET", "/queues"), ("GET", "/metrics")):
            refused = client.request(method, path)
            assert is_problem(refused, 401)
            assert refused.headers["www-authenticate"] == "Bearer"
        assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200


def test_a_token_may_do_what_its_scopes_say(guarded: ApiProcess, database: QueueDatabase) -> None:
    letter = bury(database)
    allowed = {}
    for scope in Scope:
        headers = bearer(made(database.dsn, f"only {scope}", scope))
        with httpx.Client(verify=False, base_url=guarded.url, headers=headers) as client:
            answers = {
                "look": client.get("/queues"),
                "metrics": client.get("/metrics"),
                "add": client.post("/jobs", json={"type": "a"}),
                "discard": client.post(f"/dead-jobs/{letter}/discard"),
                "pause": client.post("/queues/default/pause"),
                "cancel": client.delete("/jobs/424242"),
            }
        allowed[scope] = {name for name, answer in answers.items() if answer.status_code not in (401, 403)}

    assert allowed == {
        Scope.READ: {"look", "metrics"},
        Scope.ENQUEUE: {"add"},
        Scope.OPERATE: {"discard", "pause", "cancel"},
    }
    assert {row["operator"] for row in database.all("SELECT operator FROM operations WHERE action = 'discard'")} == {
        "token only operate"
    }


def test_only_a_hash_is_kept_and_its_use_is_noted(guarded: ApiProcess, database: QueueDatabase) -> None:
    secret = made(database.dsn, "shop", Scope.READ)

    assert httpx.get(f"{guarded.url}/queues", verify=False, headers=bearer(secret)).status_code == 200

    row = database.one("SELECT * FROM api_tokens")
    assert secret not in str(row)
    assert row["last_used_at"] is not None
    assert (row["name"], row["created_by"]) == ("shop", "ops@test")


@pytest.mark.parametrize("secret", ["pgq_wrong", "-", "x" * 5000, "pgq_\u00ff"])
def test_a_wrong_token_is_refused(guarded: ApiProcess, database: QueueDatabase, secret: str) -> None:
    headers = {b"Authorization": f"Bearer {secret}".encode("latin-1")}

    assert is_problem(httpx.get(f"{guarded.url}/queues", verify=False, headers=headers), 401)


def test_a_wrong_token_is_refused_also_where_none_is_asked_for(client: httpx.Client, database: QueueDatabase) -> None:
    assert is_problem(client.get("/queues", headers=bearer("pgq_wrong")), 401)
    assert is_problem(client.get("/queues", headers={"Authorization": "Basic eA=="}), 401)
    assert client.get("/queues").status_code == 200


def test_a_token_ends_at_its_time_and_when_it_is_revoked(guarded: ApiProcess, database: QueueDatabase) -> None:
    short = made(database.dsn, "short", Scope.READ, lifetime=timedelta(milliseconds=1))
    taken = made(database.dsn, "taken", Scope.READ)
    assert httpx.get(f"{guarded.url}/queues", verify=False, headers=bearer(taken)).status_code == 200

    async def revoke() -> None:
        async with await connect(database.dsn, application_name="test") as conn:
            await revoke_token(conn, Queries("pgq_core"), name="taken", operator="ops@test")
            with pytest.raises(OperationRefused):
                await revoke_token(conn, Queries("pgq_core"), name="taken", operator="ops@test")

    asyncio.run(revoke())

    assert is_problem(httpx.get(f"{guarded.url}/queues", verify=False, headers=bearer(short)), 401)
    eventually(
        lambda: httpx.get(f"{guarded.url}/queues", verify=False, headers=bearer(taken)).status_code == 401, interval=0.2
    )
    assert made(database.dsn, "taken", Scope.READ) != taken


def test_two_live_tokens_do_not_share_a_name(database: QueueDatabase) -> None:
    made(database.dsn, "shop", Scope.READ)

    with pytest.raises(OperationRefused):
        made(database.dsn, "shop", Scope.OPERATE)
    assert database.value("SELECT count(*) FROM operations") == 1


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "[::1", "a b"])
def test_a_name_that_is_not_ours_is_refused(client: httpx.Client, host: str) -> None:
    """A page of another site that had its name point to this machine (DNS rebinding) gets nowhere."""
    assert client.get("/queues", headers={"Host": host}).status_code in (400, 421)


async def test_two_names_at_a_time_are_none(api_dsn: str) -> None:
    """A proxy may have looked at the one and this server at the other."""
    async with in_process(api_dsn) as client:
        assert is_problem(await client.get("/queues", headers=[("Host", "localhost"), ("Host", "localhost")]), 421)


def test_the_probes_answer_under_any_name(client: httpx.Client) -> None:
    assert client.get("/healthz", headers={"Host": "10.1.2.3:8080"}).status_code == 200


def test_a_page_of_another_origin_cannot_send_requests(
    client: httpx.Client, api: ApiProcess, database: QueueDatabase
) -> None:
    letter = bury(database)
    foreign = [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://["},
    ]

    for headers in foreign:
        assert is_problem(client.post(f"/dead-jobs/{letter}/discard", headers=headers), 403)
    assert database.value("SELECT resolution FROM dead_letter_jobs") is None
    assert client.post(f"/dead-jobs/{letter}/discard", headers={"Origin": api.url}).status_code == 200


def test_no_answer_invites_another_origin(client: httpx.Client) -> None:
    answer = client.get("/queues", headers={"Origin": "https://evil.example"})

    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers


def test_names_and_origins_of_the_settings_are_allowed() -> None:
    settings = ApiSettings(host="0.0.0.0", hosts="jobs.example.org", origins="https://ops.example.org/")  # type: ignore[arg-type]
    origins = Origins.of(settings)

    assert origins.knows_host("jobs.example.org:8443")
    assert origins.knows_host("JOBS.example.org")
    assert not origins.knows_host("0.0.0.0")
    assert origins.may_send(host="jobs.example.org", origin="https://ops.example.org", fetch_site="cross-site")
    assert origins.may_send(host="jobs.example.org", origin="https://jobs.example.org:443", fetch_site="same-origin")
    assert not origins.may_send(host="jobs.example.org", origin="https://example.org", fetch_site="same-site")


def test_any_name_is_allowed_only_where_tokens_are_asked_for() -> None:
    assert load_api_settings(host="0.0.0.0", hosts=("*",)).asks_for_tokens
    with pytest.raises(InvalidSettings, match="name the hosts"):
        load_api_settings(hosts=("*",))


async def test_one_client_cannot_ask_without_end(api_dsn: str, database: QueueDatabase) -> None:
    async with in_process(api_dsn, rate=5.0) as client:
        assert (await client.get("/jobs/1")).status_code == 404
        # At the same moment, since one after the other may be slow enough on a busy machine.
        answers = await asyncio.gather(*(client.get("/jobs/1") for _ in range(100)))

        refused = [answer for answer in answers if answer.status_code != 404]
        assert all(is_problem(answer, 429) for answer in refused)
        assert int(refused[0].headers["retry-after"]) >= 1
        assert {(await client.get("/healthz")).status_code for _ in range(20)} == {200}


async def test_a_server_that_may_only_look_changes_nothing(api_dsn: str, database: QueueDatabase) -> None:
    letter = bury(database)
    async with in_process(api_dsn, read_only=True) as client:
        for path in ("/jobs", f"/dead-jobs/{letter}/discard", "/queues/default/pause"):
            refused = await client.post(path, json={"type": "a"} if path == "/jobs" else {})
            assert is_problem(refused, 403)
            assert refused.json()["type"] == "read-only"
        assert (await client.get(f"/dead-jobs/{letter}")).status_code == 200
        assert "Discard" not in (await client.get("/ui/dead")).text


def test_the_address_is_said_when_it_cannot_be_had(api: ApiProcess, api_dsn: str, directory: Path) -> None:
    port = str(urlsplit(api.url).port)

    with pytest.raises(AssertionError, match=f"cannot listen on 127.0.0.1:{port}"):
        ApiProcess(api_dsn, directory / "log", "--port", port)
