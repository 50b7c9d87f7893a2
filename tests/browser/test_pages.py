"""Every page on the demo store and on an empty one: whole, quiet, and no wider than the window."""

import pytest
from playwright.sync_api import Browser, Page

from engine.store.reads import list_runs
from tests.browser.chromium import Scheme, Troubles, open_window
from tests.browser.lab import Lab
from tests.browser.visits import BACKGROUNDS, FIGURES, PATHS, settle, shoot
from tests.store.filled import HOSTILE_TEXT

pytestmark = pytest.mark.browser

# As much as a page needs to be seen whole, so that its picture shows all of it.
HEIGHTS = {1440: 1800, 800: 2600}
_OVERFLOW = """() => [document.documentElement, document.querySelector('[data-testid="stMain"]')].map(
  (each) => each.scrollWidth - each.clientWidth
)"""
_BACKGROUND_IS = """(colour) => {
  const app = document.querySelector('[data-testid="stApp"]')
  return app && getComputedStyle(app).backgroundColor === colour
}"""
_WIDEST = """(bars) => {
  const widths = bars.map((bar) => bar.getBoundingClientRect().width)
  return widths.indexOf(Math.max(...widths))
}"""
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WORDS = {
    "runs": "Start the quick start",
    "new-run": "Nothing differs from quick-start.",
    "run": "There are no runs yet.",
    "groups": "There are no runs yet.",
    "compare": "There are no runs yet.",
}


def address(lab: Lab, name: str) -> str:
    """Return where a page is seen at its fullest: a finished run, a mixed group, all runs."""
    runs = {run.name if run.seed == 0 else "other": run.run_id for run in list_runs(lab.db)}
    first = runs.get("quick-start", "")
    queries = {
        "run": f"?run={first}",
        "groups": f"?run={first}&step=12",
        "compare": f"?runs={','.join(runs.values())}",
    }
    return lab.at(PATHS[name] + (queries.get(name, "") if runs else ""))


def assert_whole_and_quiet(page: Page, troubles: Troubles) -> None:
    assert page.locator('[data-testid="stException"]').count() == 0
    assert max(page.evaluate(_OVERFLOW)) <= 1
    assert troubles.errors == []
    assert troubles.dialogs == []


@pytest.mark.parametrize("width", [1440, 800])
@pytest.mark.parametrize("name", list(PATHS))
def test_a_page_is_drawn_whole_at_any_width_and_follows_the_scheme(
    browser: Browser, demo_lab: Lab, name: str, width: int
) -> None:
    with open_window(browser, width=width, height=HEIGHTS[width]) as (page, troubles):
        page.goto(address(demo_lab, name))
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(_BACKGROUND_IS, arg=BACKGROUNDS[scheme])
            settle(page, figures=FIGURES[name])
            shoot(page, name, width, scheme)
            assert_whole_and_quiet(page, troubles)


@pytest.mark.parametrize("width", [1440, 800])
def test_the_memory_of_a_run_is_drawn_when_its_details_are_opened_and_follows_the_form(
    browser: Browser, empty_lab: Lab, width: int
) -> None:
    with open_window(browser, width=width, height=HEIGHTS[width]) as (page, troubles):
        page.goto(empty_lab.at(PATHS["new-run"]))
        card = page.locator(".st-key-memory_card")
        card.get_by_text("Details").click()
        settle(page, figures=1)
        before = card.inner_text()
        page.get_by_label("Max tokens", exact=True).fill("96")
        page.wait_for_function(
            "(before) => document.querySelector('.st-key-memory_card').innerText !== before", arg=before
        )
        settle(page, figures=1)
        shoot(page, "memory", width, "light")
        bars = card.locator(".barlayer path")
        # Plotly listens on a sheet that lies over its bars.
        bars.nth(bars.evaluate_all(_WIDEST)).hover(force=True)
        card.locator(".hoverlayer").get_by_text("Activations:").wait_for()
        assert_whole_and_quiet(page, troubles)


@pytest.mark.parametrize("name", list(PATHS))
def test_a_page_says_what_to_do_when_the_store_is_empty(browser: Browser, empty_lab: Lab, name: str) -> None:
    with open_window(browser, height=HEIGHTS[1440]) as (page, troubles):
        page.goto(empty_lab.at(PATHS[name]))
        page.get_by_text(WORDS[name]).wait_for()
        settle(page, title=name != "run")
        shoot(page, f"{name}-empty", 1440, "light")
        assert_whole_and_quiet(page, troubles)


def test_a_hostile_completion_is_shown_as_the_text_it_is(demo_lab: Lab, window: tuple[Page, Troubles]) -> None:
    page, troubles = window
    run = next(run for run in list_runs(demo_lab.db) if run.status == "succeeded")
    page.goto(demo_lab.at(f"groups?run={run.run_id}&step=1&group=0"))
    settle(page, figures=FIGURES["groups"])
    readable = HOSTILE_TEXT.partition(" nul:")[0]
    shown = page.locator("pre", has_text="onerror").first
    assert shown.inner_text().strip().startswith(readable)
    shown.scroll_into_view_if_needed()
    assert shown.is_visible()
    injected = """() => [
      document.querySelectorAll('img[src="x"], img[onerror], a[href^="javascript"]').length,
      [...document.scripts].filter((script) => script.textContent.includes('alert(')).length,
    ]"""
    assert page.evaluate(injected) == [0, 0]
    assert troubles.dialogs == []
    assert troubles.errors == []


def test_the_name_of_a_run_is_shown_as_the_text_it_is(demo_lab: Lab, page: Page) -> None:
    run = next(run for run in list_runs(demo_lab.db) if run.status == "failed")
    page.goto(demo_lab.at(f"run?run={run.run_id}"))
    settle(page)
    assert page.locator("h1").first.inner_text().strip() == "high <b>rate</b> $x$"
    assert page.locator("h1 b, h1 .katex").count() == 0
