"""Pages of a run that is going: what was zoomed, hidden and chosen stays, and a reload changes nothing."""

import re

import pytest
from playwright.sync_api import Page, expect

from engine.presets import load_preset
from engine.store import queue
from tests.browser.lab import Lab
from tests.browser.plots import curve, sheet_of, steps, visibility, wait_for_points, x_range
from tests.browser.visits import metric, settle

pytestmark = pytest.mark.browser

# Steps of a fifth of the usual size: new points come soon, and more of them than these tests can wait for.
SMALL = {"rollout.rollout_batch_size": 32, "evaluation.size": 32, "grpo.steps": 2000, "checkpoints.every": 500}


@pytest.fixture(scope="module")
def running(lab: Lab) -> str:
    config = load_preset("quick-start", SMALL).config
    run_id = queue.enqueue(lab.db, config, name="long run", preset="quick-start")
    lab.wait_for(run_id, lambda run: run.step >= 3)
    return run_id


def open_run(page: Page, lab: Lab, run_id: str) -> None:
    page.goto(lab.at(f"run?run={run_id}"))
    page.locator("h1", has_text="long run").wait_for()
    wait_for_points(page, "reward", 3, 60)


def wait_for_more(page: Page, count: int = 2) -> None:
    wait_for_points(page, "reward", len(curve(page, "reward")) + count, 60)


def test_zoom_and_hidden_series_outlive_new_points(lab: Lab, running: str, page: Page) -> None:
    open_run(page, lab, running)
    left, top, width, height = sheet_of(page, "reward")
    page.mouse.move(left + 0.3 * width, top + 0.5 * height)
    page.mouse.down()
    page.mouse.move(left + 0.5 * width, top + 0.5 * height, steps=5)
    page.mouse.move(left + 0.7 * width, top + 0.5 * height, steps=5)
    page.mouse.up()
    zoomed = x_range(page, "reward")
    assert 0 < zoomed[0] < zoomed[1] < steps(page, "reward")[-1]
    greedy = "eval/validation/greedy_accuracy"
    page.locator(".grpo-plot .legend .traces", has_text="Held-out, greedy").locator(".legendtoggle").click()
    page.locator(".grpo-plot .legend .traces[style*='opacity: 0.5']", has_text="Held-out, greedy").wait_for()
    assert visibility(page, greedy) == "legendonly"
    wait_for_more(page)
    assert x_range(page, "reward") == zoomed
    assert visibility(page, greedy) == "legendonly"
    assert visibility(page, "reward") is True


def test_a_chosen_run_stays_chosen_while_the_table_is_drawn_anew(lab: Lab, running: str, page: Page) -> None:
    page.goto(lab.at(""))
    settle(page)
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_disabled()
    # The table is painted on a canvas: the box of the first row is 16 pixels in, in the middle of the second line.
    page.locator('[data-testid="stDataFrame"] .dvn-scroller').first.click(position={"x": 16, "y": 35 + 17})
    expect(stop).to_be_enabled()
    step = lab.run(running).step
    lab.wait_for(running, lambda run: run.step >= step + 3)
    # Two refreshes of the page later it is still so.
    page.wait_for_timeout(4_500)
    expect(stop).to_be_enabled()
    assert lab.run(running).status == "running"


def test_the_open_tab_stays_open_while_the_run_goes_on(lab: Lab, running: str, page: Page) -> None:
    open_run(page, lab, running)
    page.get_by_role("tab", name="Log").click()
    log = page.locator("pre", has_text="step").last
    log.wait_for()
    step = lab.run(running).step
    expect(page.locator('[data-testid="stMetric"]', has_text="Step")).not_to_contain_text(
        f"{step:,} of", timeout=60_000
    )
    assert page.get_by_role("tab", name="Log").get_attribute("aria-selected") == "true"


def test_a_reload_shows_the_same_run_which_goes_on(lab: Lab, running: str, page: Page) -> None:
    open_run(page, lab, running)
    before = lab.run(running)
    page.reload()
    page.locator("h1", has_text="long run").wait_for()
    assert re.search(rf"run\?run={running}\b", page.url)
    wait_for_points(page, "reward", before.step + 2, 60)
    after = lab.run(running)
    assert after.step >= before.step + 2
    assert (after.status, after.attempts) == ("running", 1)
    assert metric(page, "Status") == "▶ running"
