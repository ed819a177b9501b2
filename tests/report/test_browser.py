"""The page in a browser: it asks for nothing, complains of nothing, fits a phone, and can be used
without eyes, mouse or light.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkalog.report.page import write_page
from tests.report.evaluate import evaluate
from tests.report.example import example_document
from tests.support.browser import WAIT_MS, axe_source, headless

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WITHOUT = "axe.run({runOnly: ['html-has-lang']})"
LONG = "a-very-long-topic-name-without-a-place-to-break-" + "x" * 190


@dataclass
class Opened:
    """A page and all it said and asked for."""

    page: Page
    talk: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless() as found:
        yield found


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    made = example_document(3, 9)
    made["topics"][0]["topic"] = made["findings"][0]["topic"] = LONG
    return made


@pytest.fixture(scope="module")
def path(document: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("report") / "audit.html"
    write_page(document, str(found))
    return found


def opened(browser: Browser, path: Path, width: int = 1280, scheme: str = "light") -> Opened:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    context.set_default_timeout(WAIT_MS)
    seen = Opened(context.new_page())
    seen.page.on("console", lambda message: seen.talk.append(message.text))
    seen.page.on("pageerror", lambda error: seen.talk.append(str(error)))
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.goto(path.as_uri())
    return seen


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (320, "light")])
def test_it_asks_for_nothing_and_fits(
    browser: Browser, path: Path, width: int, scheme: str
) -> None:
    seen = opened(browser, path, width, scheme)
    seen.page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    sizes = seen.page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert sizes == [width, width]
    seen.page.wait_for_load_state("networkidle")
    assert seen.talk == []
    assert [url for url in seen.requests if not url.startswith("data:,")] == [path.as_uri()]


def test_a_request_would_be_stopped_and_seen(browser: Browser, path: Path) -> None:
    seen = opened(browser, path)
    answer = seen.page.evaluate("fetch('http://127.0.0.1:9/x').then(() => 'sent', () => 'stopped')")
    assert answer == "stopped"
    assert any("Content Security Policy" in text for text in seen.talk)


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing(browser: Browser, path: Path, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
        bypass_csp=True,  # axe comes in past the page's own policy
    )
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.goto(path.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.add_script_tag(content=axe_source())
    found = page.evaluate("axe.run()")
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]] == []
    assert len(found["passes"]) > 20
    page.evaluate("document.querySelector('html').removeAttribute('lang')")
    assert "html-has-lang" in [v["id"] for v in page.evaluate(WITHOUT)["violations"]]


def test_numbers_in_the_browser_are_the_documents(
    browser: Browser, path: Path, document: dict[str, Any]
) -> None:
    shown = opened(browser, path).page.evaluate(
        "[...document.querySelectorAll('[data-at]')].map(e => [e.dataset.at, e.dataset.value])"
    )
    assert len(shown) > 300
    for at, value in shown:
        expected = evaluate(document, at)
        expected = ", ".join(expected) if isinstance(expected, list) else expected
        assert value == str(expected), at


def test_findings_are_filtered_and_sorted_by_keyboard(browser: Browser, path: Path) -> None:
    page = opened(browser, path).page
    visible = "[...document.querySelectorAll('#findings-table tbody tr:not([hidden])')]"
    page.focus("#filter-words")
    page.keyboard.type("Payments retention.ms")
    texts = page.evaluate(f"{visible}.map(row => row.cells[2].textContent.trim())")
    assert texts
    assert all(text.startswith("payments-") for text in texts)
    assert page.text_content("#findings-shown") == f"{len(texts)} match"
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    page.select_option("#filter-severity", "warning")
    assert set(page.evaluate(f"{visible}.map(row => row.dataset.severity)")) == {"warning"}
    page.select_option("#filter-severity", "")
    button = page.locator("#findings-table th button").nth(2)
    for order, wanted in (("ascending", sorted), ("descending", lambda x: sorted(x)[::-1])):
        button.focus()
        page.keyboard.press("Enter")
        assert page.get_attribute("#findings-table th:nth-child(3)", "aria-sort") == order
        places = page.evaluate(f"{visible}.map(row => row.cells[2].textContent.trim())")
        assert len(places) == 9
        assert places == wanted(places)


def test_numbers_are_sorted_as_numbers(browser: Browser, path: Path) -> None:
    page = opened(browser, path).page
    page.click("#bytes summary")
    button = page.locator("#bytes th button").nth(1)
    button.click()
    values = page.evaluate(
        "[...document.querySelectorAll('#bytes tbody tr')]"
        ".map(row => Number(row.cells[1].querySelector('[data-value]').dataset.value))"
    )
    assert values == sorted(values)
    assert len(values) == 3


def test_twins_are_open_on_paper(browser: Browser, path: Path) -> None:
    page = opened(browser, path).page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.querySelectorAll('details:not([open])').length") == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == 0
    assert page.pdf().startswith(b"%PDF")
