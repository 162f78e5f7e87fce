"""The web page as HTML: what it shows, what its forms do, and what they refuse."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import httpx
import pytest

from pgq_core.api.tokens import Scope, create_token
from pgq_core.database import connect
from pgq_core.queries import Queries
from tests.api.rows import bury
from tests.api.server import ApiProcess, api_on
from tests.support.queue_database import QueueDatabase

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} \u202e\x1b[31m ' \" &amp; </textarea>"


class Outline(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}


@pytest.fixture
def browser(api: ApiProcess) -> Iterator[httpx.Client]:
    """Keeps cookies and follows redirects, as a browser without scripts does."""
    with httpx.Client(verify=False, base_url=api.url, timeout=60, follow_redirects=True) as opened:
        yield opened


def form_key(page: httpx.Response) -> str:
    found = re.search(r'name="form_key" value="(\w+)"', page.text)
    assert found is not None, page.text[:2000]
    return found[1]


def test_the_list_leads_to_the_letters_and_counts_the_kinds(browser: httpx.Client, database: QueueDatabase) -> None:
    letters = [bury(database, "mail", error="SMTPError: down") for _ in range(3)]
    bury(database, "bill", error="KeyError: 'x'", fingerprint="f2")

    page = browser.get("/")

    assert page.url.path == "/ui/dead"
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    outline = Outline(page.text)
    links = {attrs.get("href") for tag, attrs in outline.tags if tag == "a"}
    assert {f"/ui/dead/{letter}" for letter in letters} <= links
    assert "/ui/dead?fingerprint=f1" in links
    assert re.search(r"SMTPError\s*</b><span class=\"number\">3<", page.text)
    assert "Dead letters (4)" in page.text


def test_filters_and_pages_work_by_plain_links(browser: httpx.Client, database: QueueDatabase) -> None:
    for _ in range(51):
        bury(database, "mail")
    bill = bury(database, "bill", queue="bills", fingerprint="f2")

    filtered = browser.get("/ui/dead", params={"queue": "bills", "text": "", "reason": "", "type": "bill"})
    assert re.findall(r'class="open" href="/ui/dead/(\d+)"', filtered.text) == [str(bill)]
    first = browser.get("/ui/dead")
    older = re.search(r'rel="next" href="([^"]+)"', first.text)
    assert older is not None
    second = browser.get(older[1].replace("&amp;", "&"))
    shown = re.findall(r'class="open" href="/ui/dead/(\d+)"', first.text + second.text)
    assert len(shown) == len(set(shown)) == 52
    assert browser.get("/ui/dead", params={"reason": "nonsense"}).status_code == 422
    assert browser.get("/ui/dead", params={"queue": "a\x00"}).status_code == 422


def test_hostile_text_is_shown_literally_and_does_nothing(browser: httpx.Client, database: QueueDatabase) -> None:
    letter = bury(database, HOSTILE[:190], {HOSTILE: HOSTILE}, error=f"Boom: {HOSTILE}", queue=HOSTILE[:150])
    database.run("UPDATE dead_letter_jobs SET traceback = %s, last_worker = %s, note = %s", HOSTILE, HOSTILE, HOSTILE)

    pages = [
        browser.get("/ui/dead"),
        browser.get(f"/ui/dead/{letter}"),
        browser.get("/ui/dead", params={"text": HOSTILE}),
    ]
    pages.append(
        browser.post("/ui/dead/preview", data={"form_key": form_key(pages[0]), "ids": str(letter), "act": "discard"})
    )

    for page in pages:
        assert page.status_code == 200
        outline = Outline(page.text)
        scripts = [attrs for tag, attrs in outline.tags if tag == "script"]
        assert [attrs.get("src") for attrs in scripts] == ["/ui/static/page.js"]
        assert "img" not in outline.names()
        assert not [name for _, attrs in outline.tags for name in attrs if name.startswith("on") or name == "style"]
        assert "{{ 7*7 }}" in outline.text or page is pages[2]
        assert "\u202e" not in outline.text
        assert "\x1b" not in outline.text
    assert "<script>alert(1)</script>" in Outline(pages[1].text).text
    assert "script-src 'self'" in pages[1].headers["content-security-policy"]


def test_secrets_are_masked_on_the_page(browser: httpx.Client, database: QueueDatabase) -> None:
    letter = bury(database, "mail", {"to": "ann", "auth": {"api_key": "k-123"}, "password": ["p-123"]})

    page = browser.get(f"/ui/dead/{letter}").text

    assert "ann" in page
    assert "k-123" not in page
    assert "p-123" not in page


def test_replay_and_discard_lead_back_and_can_be_undone(browser: httpx.Client, database: QueueDatabase) -> None:
    first, second = bury(database), bury(database)
    key = form_key(browser.get(f"/ui/dead/{first}"))

    replayed = browser.post(f"/ui/dead/{first}/requeue", data={"form_key": key, "because": "smtp is back"})
    discarded = browser.post(f"/ui/dead/{second}/discard", data={"form_key": key})

    assert "Replayed 1" in Outline(replayed.text).text
    assert "Discarded 1" in Outline(discarded.text).text
    assert database.value("SELECT reason FROM operations ORDER BY id LIMIT 1") == "smtp is back"
    assert browser.get(discarded.url).status_code == 200  # a reload repeats nothing
    assert database.value("SELECT count(*) FROM operations") == 2
    operation = database.value("SELECT max(id) FROM operations")
    undone = browser.post("/ui/undo", data={"form_key": key, "operation": str(operation)})
    assert "Taken back: 1" in Outline(undone.text).text
    left = database.all("SELECT id FROM dead_letter_jobs WHERE resolution IS NULL")
    assert [row["id"] for row in left] == [second]
    refused = browser.post(f"/ui/dead/{first}/discard", data={"form_key": key})
    assert refused.status_code == 409
    assert "already replayed" in refused.text


def test_a_bulk_action_is_previewed_and_acts_on_what_was_shown(browser: httpx.Client, database: QueueDatabase) -> None:
    for _ in range(3):
        bury(database, queue="mails")
    other = bury(database, queue="bills")
    key = form_key(browser.get("/ui/dead", params={"queue": "mails"}))

    preview = browser.post("/ui/dead/preview", data={"form_key": key, "queue": "mails", "act": "discard-all"})
    assert "Discard 3 dead letters?" in Outline(preview.text).text
    late = bury(database, queue="mails")
    selection = re.search(r'name="selection" value="([^"]+)"', preview.text)
    assert selection is not None
    fields = {"form_key": key, "selection": selection[1], "verb": "discard", "queue": "mails"}
    done = browser.post("/ui/dead/run", data=fields)

    assert "Discarded 3" in Outline(done.text).text
    assert done.url.params["queue"] == "mails"
    left = database.all("SELECT id FROM dead_letter_jobs WHERE resolution IS NULL ORDER BY id")
    assert [row["id"] for row in left] == [other, late]


def test_a_form_that_is_not_ours_is_refused(browser: httpx.Client, api: ApiProcess, database: QueueDatabase) -> None:
    letter = bury(database)
    key = form_key(browser.get("/ui/dead"))
    path = f"/ui/dead/{letter}/discard"

    refused = [
        browser.post(path, data={}),
        browser.post(path, data={"form_key": "0" * 32}),
        browser.post(path, data={"form_key": key}, headers={"Origin": "https://evil.example"}),
        browser.post(path, json={"form_key": key}),
        httpx.post(f"{api.url}{path}", verify=False, data={"form_key": key}),
    ]

    assert [answer.status_code for answer in refused] == [403, 403, 403, 415, 403]
    assert database.value("SELECT resolution FROM dead_letter_jobs") is None


@pytest.mark.parametrize("path", ["/ui/dead/999999", "/ui/dead/x", "/ui/static/../pages.py", "/ui/nothing"])
def test_a_page_that_is_none_says_so_as_a_page(browser: httpx.Client, database: QueueDatabase, path: str) -> None:
    answer = browser.get(path)

    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")


def test_where_tokens_are_asked_for_one_signs_in(api_dsn: str, database: QueueDatabase, tmp_path: object) -> None:
    letter = bury(database)

    async def made(scope: Scope) -> str:
        async with await connect(api_dsn, application_name="test") as conn:
            token = await create_token(
                conn, Queries("pgq_core"), name=f"only {scope}", scopes=[scope, Scope.READ], operator="ops@test"
            )
            return token.secret

    reader, operator = asyncio.run(made(Scope.READ)), asyncio.run(made(Scope.OPERATE))
    with (
        api_on(api_dsn, tmp_path, "--require-tokens") as server,  # type: ignore[arg-type]  # a Path
        httpx.Client(verify=False, base_url=server.url, timeout=60, follow_redirects=True) as browser,
    ):
        page = browser.get(f"/ui/dead/{letter}")
        assert page.url.path == "/ui/login"
        wrong = browser.post("/ui/login", data={"form_key": form_key(page), "token": "pgq_wrong", "to": "/ui/dead"})
        assert wrong.status_code == 401
        seen = browser.post("/ui/login", data={"form_key": form_key(page), "token": reader, "to": f"/ui/dead/{letter}"})
        assert seen.url.path == f"/ui/dead/{letter}"
        assert "formaction" not in seen.text
        cookie = next(cookie for cookie in browser.cookies.jar if cookie.name == "pgq_session")
        assert cookie.has_nonstandard_attr("HttpOnly")
        assert cookie.get_nonstandard_attr("SameSite") == "strict"
        key = form_key(seen)
        assert browser.post(f"/ui/dead/{letter}/discard", data={"form_key": key}).status_code == 403
        assert httpx.get(f"{server.url}/queues", verify=False, cookies={"pgq_session": reader}).status_code == 401
        away = browser.post("/ui/login", data={"form_key": key, "token": operator, "to": "//evil.example/"})
        assert away.url.path == "/ui/dead"
        browser.post(f"/ui/dead/{letter}/discard", data={"form_key": key})
        assert database.value("SELECT resolved_by FROM dead_letter_jobs") == "token only operate"
        assert browser.post("/ui/logout", data={"form_key": key}).url.path == "/ui/login"
        assert browser.get("/ui/dead").url.path == "/ui/login"
