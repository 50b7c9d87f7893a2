import sys
from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.preview_card import token_words
from dashboard.data.preview import PreviewJob, previews
from engine.store.database import Database
from engine.tasks.run_preview import AskedPrompt, FaultyGold, GoldCheck, RunPreview, Token, to_json
from tests.dashboard.open_page import open_page
from tests.dashboard.test_new_run_page import field, launch_button, shown

PATIENCE = 60.0
HOSTILE = "<script>alert(1)</script> **b** $x$ \u202e[a](javascript:b)"
ROWS = tuple(
    AskedPrompt(
        f"mine-{number}",
        "train",
        f"What is {number}?",
        f"#### {number}",
        f"<|start|>What is {number}? {HOSTILE}",
        (Token(7, "<|start|>", True), Token(8, " What\n", False)),
        3,
        2,
    )
    for number in range(3)
)
GOOD = RunPreview(
    "done", None, ("mine: train 23 problems.",), ROWS, "answer_tag", ("</answer>",), GoldCheck(12_496, True)
)
FAULTY = RunPreview(
    "done",
    gold=GoldCheck(40, True, 1, False, (FaultyGold("mine-7", "train", HOSTILE, "it is not an answer"),)),
)
Answer = Callable[[RunPreview], None]


@pytest.fixture
def answer(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Answer]:
    """Sets what the process of a preview says; one that is not done says it and hangs."""
    jobs: list[PreviewJob] = []
    said = [GOOD]

    class Quick(PreviewJob):
        def __init__(self, config) -> None:
            hang = "" if said[0].stage == "done" else "import threading; threading.Event().wait()"
            super().__init__(config, command=(sys.executable, "-c", f"print({to_json(said[0])!r}, flush=True); {hang}"))
            jobs.append(self)
            if not hang:
                assert self.wait(PATIENCE)

    monkeypatch.setattr("dashboard.data.preview.PreviewJob", Quick)
    previews.clear()
    yield lambda known: said.__setitem__(0, known)
    for job in jobs:
        job.cancel()
    previews.clear()


def press(at: AppTest, label: str) -> AppTest:
    return next(each for each in at.button if each.label == label).click().run()


def labels(at: AppTest) -> list[str]:
    return [each.label for each in at.button]


def test_the_first_prompts_are_shown_when_they_are_asked_for(answer: Answer) -> None:
    at = open_page("new_run")
    assert "Hide" not in labels(at)
    press(at, "Show the first prompts")
    assert not at.exception
    assert "12,496 gold answers grade themselves correct" in shown(at)
    assert "mine\\: train 23 problems\\." in shown(at)
    assert "The reward **answer\\_tag** reads the completion, which ends with `</answer>`, the end token" in shown(at)
    assert "mine\\-0 · train · prompt **2** tokens · question 3 tokens · gold answer 2 tokens" in shown(at)
    texts = [each.value for each in at.code]
    assert texts[0] == f"<|start|>What is 0? {HOSTILE}".replace("\u202e", "⟨U+202E⟩")
    assert texts[1] == "#### 0"
    assert HOSTILE not in shown(at)
    press(at, "Hide")
    assert "Show the first prompts" in labels(at)


def test_another_problem_and_its_tokens_are_chosen(answer: Answer) -> None:
    at = press(open_page("new_run"), "Show the first prompts")
    next(each for each in at.segmented_control if each.key == "preview_problem").set_value(3).run()
    next(each for each in at.toggle if each.label == "Token ids").set_value(True).run()
    assert at.code[0].value.startswith("<|start|>What is 2?")
    assert at.dataframe[0].value.values.tolist() == [[0, 7, "<|start|>", "special"], [1, 8, "␣What↵", ""]]


def test_a_field_that_matters_marks_the_preview_as_out_of_date_and_another_does_not(answer: Answer) -> None:
    at = press(open_page("new_run"), "Show the first prompts")
    field(at, "optimizer.learning_rate").set_value("1e-3").run()
    assert "Of earlier settings" not in shown(at)
    field(at, "prompt.name").set_value("minimal").run()
    assert "Of earlier settings" in shown(at)
    answer(RunPreview("done", error="task.path: there is no such_file; give another."))
    press(at, "Renew")
    assert "Of earlier settings" not in shown(at)
    assert "task\\.path\\: there is no such\\_file; give another\\." in shown(at)
    field(at, "prompt.name").set_value("r1_zero").run()
    assert "Of earlier settings" in shown(at)
    press(at, "Renew")
    assert "12,496 gold answers" in shown(at), "kept from the first time"


def test_faulty_gold_answers_are_listed_and_left_out_by_one_click(answer: Answer) -> None:
    answer(FAULTY)
    at = open_page("new_run")
    field(at, "task.name").set_value("gsm8k").run()
    press(at, "Show the first prompts")
    assert "1 of 40 gold answers does not grade itself correct, and the run would be refused" in shown(at)
    (row,) = next(each for each in at.dataframe if "why" in each.value.columns).value.values.tolist()
    assert row[0] == "mine-7"
    assert row[2].startswith("<script>")
    assert row[3] == "it is not an answer"
    answer(RunPreview("done", gold=GoldCheck(40, True, 1, True)))
    press(at, "Leave them out")
    assert field(at, "task.gold_faults").value == "leave_out"
    assert "is left out \\(task\\.gold\\_faults=leave\\_out\\)" in shown(at)
    assert "Leave them out" not in labels(at)
    assert "Of earlier settings" not in shown(at)


def test_what_is_known_is_shown_while_the_rest_is_worked_out_and_can_be_cancelled(answer: Answer) -> None:
    answer(RunPreview("gold", rows=ROWS, reward="boxed"))
    at = press(open_page("new_run"), "Show the first prompts")
    job = next(iter(previews()._jobs.values()))
    while job.latest.stage == "data":
        assert not job.wait(0.05)
    at.run()
    assert "Checking the gold answers …" in shown(at)
    assert at.code[0].value.startswith("<|start|>")
    assert not launch_button(at).disabled
    press(at, "Cancel")
    assert not job.running
    assert "Show the first prompts" in labels(at)


def test_a_preview_under_way_is_given_up_when_a_field_that_matters_changes(answer: Answer) -> None:
    answer(RunPreview("gold"))
    at = press(open_page("new_run"), "Show the first prompts")
    job = next(iter(previews()._jobs.values()))
    field(at, "seed").set_value("5").run()
    assert not job.running
    assert "Show the first prompts" in labels(at)


def test_without_a_config_there_is_nothing_to_preview(answer: Answer) -> None:
    at = open_page("new_run")
    field(at, "rollout.rollout_batch_size").set_value("100").run()
    assert next(each for each in at.button if each.label == "Show the first prompts").disabled


@pytest.mark.parametrize(
    ("text", "words"),
    [(" a b ", "␣a b␣"), ("  ", "␣␣"), ("\nUser: ", "↵User:␣"), ("aa", "aa"), ("", ""), ("\x00", "⟨U+0000⟩")],
)
def test_spaces_at_the_ends_of_a_token_are_visible(text: str, words: str) -> None:
    assert token_words(text) == words
