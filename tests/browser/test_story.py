"""The whole story: from an empty store to two runs over one another and a group of completions, with nothing faked."""

import json
import os
import re
import time
from statistics import mean

import pytest
from playwright.sync_api import Page, expect

from engine.store.reads import groups, list_runs
from engine.store.status import ENDED
from tests.browser.chromium import Troubles
from tests.browser.lab import ARTEFACTS, Lab, wait_until
from tests.browser.plots import curve, place_of, steps, strokes, wait_for_drawn, wait_for_points
from tests.browser.visits import metric, settle, shoot

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# From the click to the first drawn point of a curve. A CI machine shares its cores with strangers: it gets twice that.
FIRST_POINT_SECONDS = 30.0 if os.environ.get("CI") else 15.0
STEPS_BEFORE_JUDGING = 12
# A step takes about a second on two free cores; these waits end the test where it would otherwise hang.
STEPS_SECONDS = 180.0


def start_the_quick_start(page: Page, lab: Lab) -> str:
    """Press the button, measure how long the first point takes, and return the id of the run."""
    page.goto(lab.at(""))
    button = page.get_by_role("button", name="Start the quick start")
    button.wait_for()
    settle(page)
    clicked = time.monotonic()
    button.click()
    wait_for_drawn(page, seconds=STEPS_SECONDS)
    first_point = time.monotonic() - clicked
    wait_for_drawn(page, "reward", seconds=STEPS_SECONDS)
    first_reward = time.monotonic() - clicked
    measured = {
        "seconds_to_first_point": round(first_point, 2),
        "seconds_to_first_reward": round(first_reward, 2),
        "limit": FIRST_POINT_SECONDS,
    }
    print(f"\nfirst point on the page: {measured}")
    ARTEFACTS.mkdir(exist_ok=True)
    (ARTEFACTS / "first_point.json").write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")
    assert first_point < FIRST_POINT_SECONDS
    [run] = list_runs(lab.db)
    assert f"run={run.run_id}" in page.url
    return run.run_id


def watch_it_learn(page: Page) -> None:
    wait_for_points(page, "reward", STEPS_BEFORE_JUDGING, STEPS_SECONDS)
    wait_for_points(page, "entropy", STEPS_BEFORE_JUDGING, STEPS_SECONDS)
    assert metric(page, "Status") == "▶ running"
    rewards, entropies = curve(page, "reward"), curve(page, "entropy")
    assert mean(rewards[-3:]) > rewards[0]
    assert mean(entropies[-3:]) < entropies[0]
    shoot(page, "run-live", 1440, "light")


def stop_it(page: Page, lab: Lab, run_id: str) -> None:
    page.get_by_role("button", name="Stop", exact=True).click()
    status = page.locator('[data-testid="stMetric"]', has_text="Status")
    expect(status).to_contain_text("■ stopped", timeout=60_000)
    assert lab.run(run_id).status == "stopped"
    assert STEPS_BEFORE_JUDGING <= lab.run(run_id).step < lab.run(run_id).total_steps


def launch_another_by_a_double_click(page: Page, lab: Lab, first: str) -> str:
    page.get_by_role("link", name="New run").first.click()
    page.get_by_text("Nothing differs from quick-start.").wait_for()
    for label, text in (("Learning rate", "3e-4"), ("Steps", "12")):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_text("12 steps").first.wait_for()
    settle(page)
    page.get_by_role("button", name="Launch").dblclick()
    page.wait_for_url(re.compile(r"run\?run=(?!" + first + ")"))
    launched = {run.run_id for run in list_runs(lab.db)} - {first}
    [second] = launched
    lab.wait_for(second, lambda run: run.step >= 3 or run.status in ENDED, STEPS_SECONDS)
    assert len(list_runs(lab.db, include_archived=True)) == 2
    config = lab.run(second).run_config()
    assert (config.optimizer.learning_rate, config.grpo.steps) == (3e-4, 12)
    return second


def lay_them_over_one_another(page: Page, lab: Lab, first: str, second: str) -> None:
    page.goto(lab.at(f"compare?runs={first},{second}"))
    settle(page, figures=4)
    for run_id in (first, second):
        wait_for_points(page, f"{run_id}:line", 1, 30)
    page.wait_for_function("document.querySelectorAll('.grpo-plot .scatterlayer path.js-line').length >= 8")
    for colours in strokes(page):
        assert len(colours) == 2
        assert len(set(colours)) == 2
    shoot(page, "compare-live", 1440, "light")


def open_the_groups_of_a_point(page: Page, lab: Lab, run_id: str) -> int:
    page.goto(lab.at(f"run?run={run_id}"))
    settle(page, figures=9)
    step = next(
        step
        for step in reversed(steps(page, "reward"))
        if any(group.kind == "mixed" for group in groups(lab.db, run_id, step))
    )
    x, y = place_of(page, "reward", step)
    page.mouse.move(x, y)
    page.locator(".grpo-plot .hoverlayer > g").first.wait_for()
    page.mouse.click(x, y)
    page.wait_for_url(re.compile(rf"groups\?.*step={step}\b"))
    return step


def read_the_advantages_of_a_mixed_group(page: Page) -> None:
    page.get_by_role("radio", name=re.compile("^mixed")).or_(
        page.get_by_role("button", name=re.compile("^mixed"))
    ).first.click()
    page.get_by_role("heading", name=re.compile("right, mixed")).wait_for()
    settle(page, figures=1)
    cards = page.locator('[class*="st-key-completion_"]:not([class*="completion_table"])')
    expect(cards).to_have_count(8)
    heads = [card.locator("p").first.inner_text() for card in cards.all()]
    shown = [re.search(r"advantage ([+-]\d+\.\d{3})", head) for head in heads]
    advantages = [float(found[1]) for found in shown if found]
    assert len(advantages) == 8
    assert abs(sum(advantages)) <= 8 * 0.0005 + 1e-9
    assert min(advantages) < 0 < max(advantages)
    for head, advantage in zip(heads, advantages, strict=True):
        assert ("✓ correct" in head) == (advantage > 0)
    shoot(page, "groups-live", 1440, "light")


def test_from_an_empty_store_to_two_runs_compared_and_a_group_understood(
    lab: Lab, window: tuple[Page, Troubles]
) -> None:
    page, troubles = window
    first = start_the_quick_start(page, lab)
    watch_it_learn(page)
    stop_it(page, lab, first)
    second = launch_another_by_a_double_click(page, lab, first)
    lay_them_over_one_another(page, lab, first, second)
    open_the_groups_of_a_point(page, lab, first)
    read_the_advantages_of_a_mixed_group(page)
    wait_until(lambda: lab.run(second).status in ENDED, STEPS_SECONDS, lambda: f"{second} goes on")
    assert lab.run(second).status == "succeeded"
    assert len(list_runs(lab.db, include_archived=True)) == 2
    assert page.locator('[data-testid="stException"]').count() == 0
    assert troubles.errors == []
