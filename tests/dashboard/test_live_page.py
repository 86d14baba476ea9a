"""The page in Chromium beside a run that goes on: it grows, it steers, and keyboards reach it."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Browser, chromium
from command import start, wait_until
from hand_log import recorded
from served import Page, hand_folder, served
from test_served_pages import BREAKS, NAME, hostile_folder

from engine.store import EventLog, Hint, read_log

pytestmark = pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
RUN = ["problem=signal", "model=mutation", "evaluation.workers=1", "islands.count=2", "seed=1"]
TAB = 9
ENTER = 13
CANDIDATES = "Number([...document.querySelectorAll('#facts dt')]"
CANDIDATES += ".find((each) => each.textContent === 'candidates')"
CANDIDATES += "?.nextSibling.textContent.replaceAll(',', ''))"
STATE = "document.getElementById('state').textContent"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    hostile_folder(folder / NAME)
    hand_folder(folder / "it", events=recorded()[:6])
    return folder


@pytest.fixture(scope="module")
def held(runs: Path) -> Iterator[EventLog]:
    """The log of a run that somebody works on."""
    with EventLog(runs / "it", session=0) as log:
        yield log


@pytest.fixture(scope="module")
def page(runs: Path, held: EventLog) -> Iterator[Page]:
    with served(runs) as it:
        yield it


@pytest.fixture
def going_on(page: Page, runs: Path, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A run beside the others."""
    process = start(
        *RUN,
        *(f"runs={runs}", "name=going", "budget.candidates=100000", "budget.seconds=300"),
        scratch=tmp_path / "scratch",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: (runs / "going").exists() or process.poll() is not None)
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(60)


@pytest.fixture
def browser(page: Page, tmp_path: Path) -> Iterator[Browser]:
    """A browser that has found nothing wrong in the end, and asked nobody but the page."""
    with chromium(tmp_path / "profile") as it:
        yield it
        assert it.problems() == []
        assert it.requested() and all(each.startswith(page.address) for each in it.requested())


def clicked(browser: Browser, selector: str) -> None:
    browser.evaluate(f"document.querySelector({selector!r}).click()")


def reached(browser: Browser, most: int) -> list[str]:
    """Press Tab again and again; return what has the focus, and that it can be seen."""
    found = []
    for _ in range(most):
        browser.press("Tab", code=TAB)
        found.append(
            browser.evaluate(
                "(() => { const it = document.activeElement, style = getComputedStyle(it);"
                " return `${it.tagName} ${it.id || it.textContent.trim().slice(0, 20)} "
                "${style.outlineStyle}`; })()"
            )
        )
    return found


def test_all_runs_are_told_sorted_and_reached_by_keyboard(
    browser: Browser, page: Page, held: EventLog
) -> None:
    browser.open(page.address)
    browser.until("document.querySelectorAll('#runs tbody tr').length === 2")
    cells = (
        "[...document.querySelectorAll('#runs tbody tr')].map((each) => each.cells[%d].innerText)"
    )
    assert browser.until(f"{cells % 1}.includes('running') && {cells % 1}")
    assert browser.evaluate(cells % 0) == [NAME, "it"]
    growing = f"Number({cells % 4}.at(-1).replace(',', ''))"
    browser.until(f"{growing} === 1")
    for each in recorded()[6:14]:
        held.append(each.event)
    held.commit()
    browser.until(f"{growing} === 4")
    assert browser.evaluate("document.querySelectorAll('th[scope=col]').length") == 9
    assert browser.evaluate("document.querySelectorAll('th[scope=row]').length") == 2
    focused = reached(browser, 13)
    assert focused[0] == "A Go to the content solid" and "none" not in {
        e.split()[-1] for e in focused
    }
    assert "BUTTON Candidates solid" in focused and "A it solid" in focused
    browser.evaluate("document.querySelector('[data-key=candidates] button').focus()")
    browser.press("Enter", code=ENTER, text="\r")
    assert browser.evaluate(cells % 0) == [NAME, "it"]  # 5 candidates and 4
    browser.press("Enter", code=ENTER, text="\r")
    assert browser.evaluate(cells % 0) == ["it", NAME]
    sorting = (
        "[...document.querySelectorAll('[aria-sort]')].map((e) => e.getAttribute('aria-sort'))"
    )
    assert browser.evaluate(sorting) == ["ascending"]
    clicked(browser, "#runs tbody a")
    browser.until("location.pathname === '/runs/it'")


def test_without_the_token_there_is_no_wheel(browser: Browser, page: Page) -> None:
    browser.open(f"{page.address}runs/it")
    browser.until(f"{STATE} === 'running'")
    assert browser.evaluate("document.getElementById('wheel').hidden") is True
    assert browser.evaluate("document.getElementById('no-token').hidden") is False


def test_what_candidates_wrote_does_nothing(browser: Browser, page: Page) -> None:
    browser.open(page.address)
    browser.until("document.querySelectorAll('#runs tbody tr').length === 2")
    clicked(browser, "#runs tbody a")
    browser.until("document.querySelectorAll('.list tr').length === 7")
    browser.until("document.querySelectorAll('.chart svg').length > 2")
    clicked(browser, ".list button")
    text = browser.until("document.querySelector('.program code').textContent")
    assert BREAKS in text
    browser.until("document.activeElement.textContent === 'Program 1.1'")
    browser.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    browser.until("document.querySelectorAll('.numbers table').length > 2")
    assert browser.evaluate("document.title") == f"Run {NAME}"
    assert browser.evaluate("document.querySelectorAll('u, b, main img').length") == 0


@pytest.mark.slow
def test_figures_grow_and_the_run_is_steered(
    browser: Browser, page: Page, runs: Path, going_on: subprocess.Popen[str]
) -> None:
    browser.open(f"{page.address}runs/going#token={page.token}")
    browser.until("!document.getElementById('wheel').hidden")
    assert page.token not in browser.evaluate("location.href")
    drawn = "Number(document.querySelector('#figure-best-by-candidates .chart')?.dataset.drawn)"
    browser.until(f"{drawn} >= 3 && {CANDIDATES} > 10")
    label = browser.evaluate("document.querySelector('.chart svg').getAttribute('aria-label')")
    assert label.startswith("Step lines;")
    assert browser.evaluate("document.querySelector('.chart svg').getAttribute('role')") == "img"
    assert browser.evaluate("document.querySelectorAll('.chart > .next').length") <= 1

    clicked(browser, "#pause")
    browser.until(f"{STATE} === 'paused'")
    assert browser.evaluate("document.getElementById('pause').disabled") is True
    assert "paused" in browser.evaluate("document.getElementById('news').textContent")
    browser.evaluate("document.getElementById('text').focus()")
    hint = "<img src=x onerror=alert(1)> try a median"
    browser.send("Input.insertText", text=hint)
    clicked(browser, "#hint [type=submit]")
    shown = "document.getElementById('hint-text').textContent"
    browser.until(f"{shown} === {hint!r}")
    clicked(browser, "#resume")
    browser.until(f"{STATE} === 'running'")
    before = browser.evaluate(CANDIDATES)
    browser.until(f"{CANDIDATES} > {before}")
    clicked(browser, "#clear")
    browser.until("document.getElementById('shown-hint').hidden")

    clicked(browser, "#stop")
    assert browser.evaluate("document.getElementById('sure').open") is True
    assert browser.evaluate("document.activeElement.id") == "really"
    clicked(browser, "#really")
    assert going_on.wait(60) == 130
    browser.until(f"{STATE} === 'stopped'")
    assert browser.evaluate("document.getElementById('wheel').hidden") is True
    events = [each.event for each in read_log(runs / "going")]
    hints = [each.text for each in events if isinstance(each, Hint)]
    assert hints == [hint, ""]
    assert (runs / "going" / "summary.json").exists()
