"""The page in a real browser, with scripts and without: what a person sees, presses and types."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.api.rows import bury
from tests.api.server import ApiProcess
from tests.support.queue_database import QueueDatabase

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.browser, pytest.mark.system]

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> \u202egnp.exe"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (the extra dev has it)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser, api: ApiProcess) -> Iterator[Page]:
    """Fails when a script fails, when the page breaks its own policy, or when anything could not be loaded."""
    context = chromium.new_context(base_url=api.url, viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    faults: list[str] = []
    opened.on("console", lambda message: faults.append(message.text) if message.type in {"error", "warning"} else None)
    opened.on("pageerror", lambda error: faults.append(str(error)))
    yield opened
    context.close()
    assert faults == []


@pytest.fixture
def plain_page(chromium: Browser, api: ApiProcess) -> Iterator[Page]:
    """Without scripts."""
    context = chromium.new_context(base_url=api.url, java_script_enabled=False)
    yield context.new_page()
    context.close()


def resolutions(database: QueueDatabase) -> list[str | None]:
    return [row["resolution"] for row in database.all("SELECT resolution FROM dead_letter_jobs ORDER BY id")]


def test_a_letter_is_discarded_and_taken_back_by_mouse(page: Page, database: QueueDatabase) -> None:
    letter = bury(database)
    page.goto("/")

    page.get_by_role("button", name=f"Discard dead letter {letter}").click()
    page.get_by_text("Discarded 1").wait_for()
    assert resolutions(database) == ["discarded"]
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back: 1").wait_for()

    assert resolutions(database) == [None]


def test_everything_can_be_reached_by_keys(page: Page, database: QueueDatabase) -> None:
    letters = [bury(database) for _ in range(3)]
    page.goto("/ui/dead")
    assert page.get_by_role("button", name="Replay ticked…").is_disabled()

    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    assert page.locator("#ticked").inner_text() == "1 ticked"
    page.keyboard.press("k")
    page.keyboard.press("x")
    assert page.locator("#ticked").inner_text() == "2 ticked"
    page.get_by_role("button", name="Replay ticked…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Replay 2 dead letters?").wait_for()
    page.keyboard.press("Enter")  # the button has the focus
    page.get_by_text("Replayed 2").wait_for()

    assert resolutions(database) == [None, "replayed", "replayed"]
    page.keyboard.press("/")
    page.keyboard.type("no such error")
    page.keyboard.press("Enter")
    page.get_by_text("Nothing matches this filter").wait_for()
    page.goto("/ui/dead")
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    page.locator("#keys").wait_for(state="hidden")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/ui/dead/{letters[0]}")


def test_a_key_counts_from_the_moment_the_help_is_closed(page: Page, database: QueueDatabase) -> None:
    """The browser leaves the focus in the closed dialog until it draws the next frame, however long that takes."""
    letter = bury(database)
    page.goto("/ui/dead")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()

    focused = page.evaluate(
        """() => {
            document.getElementById("keys").close();
            const before = document.activeElement;
            before.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
            return [before.tagName, document.activeElement.getAttribute("href")];
        }"""
    )

    assert focused == ["BUTTON", f"/ui/dead/{letter}"]


def test_the_page_works_without_scripts(plain_page: Page, database: QueueDatabase) -> None:
    letters = [bury(database, queue="mails") for _ in range(3)]
    bury(database, queue="bills")
    plain_page.goto("/ui/dead")

    plain_page.get_by_label("Queue").fill("mails")
    plain_page.get_by_role("button", name="Filter").click()
    plain_page.get_by_label(f"Tick dead letter {letters[1]}").check()
    plain_page.get_by_role("button", name="Discard ticked…").click()
    plain_page.get_by_label("Why").fill("no longer needed")
    plain_page.get_by_role("button", name="Discard 1").click()

    plain_page.get_by_text("Discarded 1").wait_for()
    assert resolutions(database) == [None, "discarded", None, None]
    assert database.value("SELECT reason FROM operations") == "no longer needed"


def test_hostile_text_stays_text(page: Page, database: QueueDatabase) -> None:
    letter = bury(database, HOSTILE[:190], {"html": HOSTILE, HOSTILE: 1}, error=f"Boom: {HOSTILE}", queue=HOSTILE[:150])
    database.run("UPDATE dead_letter_jobs SET traceback = %s", HOSTILE)

    for address in ("/ui/dead", f"/ui/dead/{letter}"):
        page.goto(address)
        assert "owned" not in page.title()
        assert page.locator("main img").count() == 0
        assert "document.title='owned'" in page.locator("main").inner_text()
    assert "\\u202egnp.exe" in page.locator("#payload").inner_text()


def test_what_dies_meanwhile_is_told_and_not_slipped_in(page: Page, database: QueueDatabase) -> None:
    first = bury(database)
    page.clock.install()
    page.goto("/ui/dead")
    assert page.locator("tbody tr").count() == 1
    bury(database)

    page.clock.run_for(11_000)
    page.get_by_text("More jobs have died since.").wait_for()
    assert page.locator("tbody tr").count() == 1
    assert page.get_by_role("link", name=str(first), exact=True).is_visible()
    page.get_by_role("link", name="Show them").click()
    page.wait_for_function("document.querySelectorAll('tbody tr').length === 2")


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [1280, 420])
def test_the_page_fits_its_window_in_both_schemes(
    page: Page, database: QueueDatabase, scheme: str, width: int, tmp_path: Path
) -> None:
    letter = bury(database, "a_rather_long_name_of_a_type", {"text": "x" * 500}, error=f"Error: {'long' * 100}")
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the two words
    page.set_viewport_size({"width": width, "height": 800})

    for address in ("/ui/dead", f"/ui/dead/{letter}"):
        page.goto(address)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=tmp_path / "page.png")
        for selector in ("h1", ".failed", ".dim", "td.job .type, h1"):
            assert _contrast(page, selector) >= 4.5, (address, selector)


_CONTRAST = """(selector) => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const element = document.querySelector("main " + selector);
  let behind = element;
  const isClear = (node) => channels(getComputedStyle(node).backgroundColor)[3] === 0;
  while (behind.parentElement && isClear(behind)) behind = behind.parentElement;
  const colours = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor];
  const pair = colours.map((colour) => light(channels(colour)));
  return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
}"""


def _contrast(page: Page, selector: str) -> float:
    """Of the text with what is behind it, as WCAG computes it."""
    return float(page.evaluate(_CONTRAST, selector))
