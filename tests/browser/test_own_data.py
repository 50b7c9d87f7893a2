"""Problems of one's own from the form to the page of a group: typed, looked at, launched, trained on."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from engine.store.reads import groups
from engine.store.records import Run
from engine.store.status import ENDED
from tests.browser.chromium import Troubles
from tests.browser.lab import Lab
from tests.browser.visits import settle, shoot

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

# The preview imports transformers, and a run torch; these waits end a test that would otherwise hang.
SECONDS = 180.0
TINY = {"Steps": "2", "Rollout batch size": "8", "Group size": "4", "Max tokens": "16"}


def write_problems(file: Path) -> None:
    """Write 24 problems in GSM8K's form: a worked solution, the answer behind the last ####."""
    rows = [
        {
            "question": f"A crate holds {n} pears and {n + 3} plums. How many pieces of fruit is that?",
            "answer": f"There are {n} + {n + 3} = {2 * n + 3} pieces.\n#### {2 * n + 3}",
        }
        for n in range(1, 25)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def open_fold(page: Page, title: str) -> None:
    page.locator("summary", has_text=re.compile(f"^{title}: ")).click()


def fill(page: Page, entries: Mapping[str, str]) -> None:
    for label, text in entries.items():
        page.get_by_label(label, exact=True).fill(text)
    settle(page)


def choose(page: Page, label: str, option: str) -> None:
    box = page.get_by_role("combobox", name=re.compile(rf"\b{label}$"))
    box.click()
    box.fill(option)
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def open_form(page: Page, lab: Lab) -> None:
    page.goto(lab.at("new_run"))
    settle(page)
    fill(page, TINY)
    open_fold(page, "Evaluation")
    open_fold(page, "Task")
    page.get_by_label("Size", exact=True).wait_for()
    fill(page, {"Size": "4"})


def look_at_the_preview(page: Page, found: str) -> str:
    """Ask for the first prompts, wait until all is known, and return what the card says."""
    page.get_by_role("button", name="Show the first prompts").click()
    card = page.locator(".st-key-preview_card")
    card.get_by_role("button", name="Hide", exact=True).wait_for(timeout=1000 * SECONDS)
    expect(card).to_contain_text(found)
    card.get_by_text("Token ids").click()
    card.locator('[data-testid="stDataFrame"] canvas').first.wait_for()
    settle(page)
    return card.inner_text()


def launch(page: Page, lab: Lab) -> Run:
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile(r"run\?run="))
    run_id = page.url.partition("run=")[2]
    run = lab.wait_for(run_id, lambda run: run.status in ENDED, SECONDS)
    assert (run.status, run.step) == ("succeeded", 2), run
    return run


def open_a_group(page: Page, lab: Lab, run: Run, step: int) -> str:
    """Open the first group of a step and return its question, which the page shows as it stands in the store."""
    first, *_ = groups(lab.db, run.run_id, step)
    page.goto(lab.at(f"groups?run={run.run_id}&step={step}&group={first.index}"))
    settle(page, figures=1)
    expect(page.locator("pre", has_text=first.question.strip()).first).to_be_visible()
    return first.question


def test_a_file_in_gsm8ks_form_is_chosen_looked_at_and_trained_on(
    lab: Lab, window: tuple[Page, Troubles], tmp_path: Path
) -> None:
    page, troubles = window
    file = tmp_path / "fruit.jsonl"
    write_problems(file)
    open_form(page, lab)
    choose(page, "Task", "gsm8k")
    fill(page, {"Path": f"{file}.not"})
    page.get_by_text("there is no").wait_for()
    fill(page, {"Path": str(file)})
    page.get_by_text("fruit.jsonl: 2 columns").wait_for()
    said = look_at_the_preview(page, "24 gold answers grade themselves correct.")
    assert "train 22, validation 2 problems" in said
    assert "evaluation.size=4 is above the 2 validation problems" in said
    assert re.search(r"User: A crate holds \d+ pears", said)
    assert re.search(r"#### \d+", said)
    shoot(page, "new-run-own-data", 1440, "light")
    run = launch(page, lab)
    assert run.run_config().task.path == str(file)
    assert open_a_group(page, lab, run, 1).startswith("A crate holds")
    assert troubles.errors == []


def test_a_generator_of_reasoning_gym_is_chosen_looked_at_and_trained_on(
    lab: Lab, window: tuple[Page, Troubles]
) -> None:
    pytest.importorskip("reasoning_gym")
    page, troubles = window
    open_form(page, lab)
    choose(page, "Task", "reasoning_gym")
    choose(page, "Generator", "chain_sum")
    fill(page, {"Generator options": "min_terms=2; max_terms=2; max_digits=1"})
    said = look_at_the_preview(page, "Gold answers are not checked")
    assert "State the final answer to the following arithmetic problem" in said
    run = launch(page, lab)
    task = run.run_config().task
    assert (task.name, task.generator) == ("reasoning_gym", "chain_sum")
    assert "arithmetic problem" in open_a_group(page, lab, run, 1)
    assert troubles.errors == []
