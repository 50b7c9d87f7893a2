from collections.abc import Iterable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from engine.presets import load_preset
from engine.store import queue, writes
from engine.store.database import Database
from engine.store.reads import evaluations
from tests.dashboard.open_page import figures, filled, numbers, open_page
from tests.store.filled import HOSTILE_TEXT, evaluation_record, sampled_evaluation, small_config


@pytest.fixture
def run_id(db: Database) -> str:
    """A run without steps: four answers to each of three problems."""
    run_id = queue.enqueue(db, load_preset("base-model").config, name="as it is", preset="base-model")
    writes.write_evaluation(db, run_id, sampled_evaluation(0, [1, 4, 0], samples=4, hostile=True))
    writes.write_evaluation(db, run_id, evaluation_record(0, 0.5, greedy=True))
    return run_id


def end(db: Database, run_id: str) -> None:
    for status in ("starting", "running", "succeeded"):
        queue.transition(db, run_id, status)  # type: ignore[arg-type]


def opened(run_id: str, tab: str | None = None, **state: Any) -> AppTest:
    """Open the page of a run, on a tab that is not the first one of its kind, with widgets in a state."""
    at = open_page("run", run=run_id)
    if tab is not None:
        at.session_state["run_tab"] = tab
    for key, value in state.items():
        at.session_state[key.replace("__", ":")] = value
    at.run()
    assert not at.exception
    return at


def ticked(*rows: int) -> dict[str, Any]:
    return {"selection": {"rows": list(rows), "columns": [], "cells": []}}


def words(at: AppTest) -> str:
    return "\n".join(each.value for each in (*at.caption, *at.info, *at.markdown, *at.subheader))


def columns(frame: Any, names: Iterable[str]) -> list[list[Any]]:
    return frame.value[list(names)].values.tolist()


def test_a_run_without_steps_opens_on_what_it_measured(db: Database, run_id: str) -> None:
    end(db, run_id)
    at = opened(run_id)
    assert {fact.label: fact.value for fact in at.metric} == {
        "Status": "✓ succeeded",
        "Step": "none",
        "Duration": "–",
        "Accuracy": "41.7 %",
        "Seed": "0",
    }
    assert "it evaluates **tiny\\-math**" in words(at)
    table, problems = at.dataframe
    assert columns(table, ("mode", "problems", "samples")) == [["sampled", 3, 4], ["greedy", 8, 1]]
    assert columns(table, ("accuracy", "pass@2", "pass@4"))[0] == pytest.approx([500 / 12, 50.0, 200 / 3])
    assert columns(problems, ("right", "wrong", "unreadable", "not_graded")) == [
        ["1 of 4", 1, 1, 1],
        ["4 of 4", 0, 0, 0],
        ["0 of 4", 2, 1, 1],
    ]


def test_the_curve_has_pass_at_k_with_its_interval_and_the_majority(db: Database, run_id: str) -> None:
    (figure,) = [figure for figure in figures(opened(run_id)) if figure["data"][0]["uid"] == "band-0"]
    band, curve, star = figure["data"]
    assert numbers(curve["x"]) == [1, 2, 4]
    assert numbers(curve["y"]) == pytest.approx([5 / 12, 1 / 2, 2 / 3])
    assert (curve["name"], star["uid"]) == ("step 0, sampled at T = 1", "majority-0")
    assert numbers(star["y"]) == pytest.approx([1 / 3])
    assert len(numbers(band["x"])) == 6
    assert figure["layout"]["xaxis"]["type"] == "log"


def test_the_charts_of_a_run_without_steps_point_to_its_evaluations(db: Database, run_id: str) -> None:
    at = opened(run_id, run_tab_without_steps="Charts")
    assert "what it measured is in the tab Evaluations" in words(at)


def test_a_ticked_problem_shows_its_answers_and_a_ticked_answer_its_text_as_it_is(db: Database, run_id: str) -> None:
    row = next(row for row in evaluations(db, [run_id]) if row.mode == "sampled")
    problem, answer = f"evaluation_problems__{row.evaluation_id}__all", f"evaluation_answers__{row.evaluation_id}__0"
    at = opened(run_id, **{problem: ticked(0), answer: ticked(3)})
    answers = at.dataframe[2]
    assert columns(answers, ("sample", "verdict")) == [
        [0, "✓ correct"],
        [1, "✕ wrong"],
        [2, "– not graded"],
        [3, "◇ unreadable"],
    ]
    assert answers.value["answer"].fillna("none").tolist() == ["5", "0", "0", "none"]
    (text,) = [each.value for each in at.code if "alert" in each.value]
    assert text == HOSTILE_TEXT.replace("\x00", "␀").replace("\ud800", "�")


def test_the_verdict_narrows_the_problems(db: Database, run_id: str) -> None:
    at = opened(run_id, **{f"evaluation_verdict__{run_id}": "correct"})
    assert columns(at.dataframe[1], ("right",)) == [["1 of 4"], ["4 of 4"]]


def test_a_newer_evaluation_is_shown_unless_a_problem_is_being_read(db: Database) -> None:
    run_id = queue.enqueue(db, small_config(), name="live")
    writes.write_evaluation(db, run_id, evaluation_record(0, 0.25))
    at = opened(run_id, "Evaluations")
    assert "Answers: step 0" in words(at)
    writes.write_evaluation(db, run_id, evaluation_record(10, 0.5))
    at.run()
    assert "Answers: step 10" in words(at)
    (_, newest) = evaluations(db, [run_id])
    at.session_state[f"evaluation_problems:{newest.evaluation_id}:all"] = ticked(1)
    at.run()
    writes.write_evaluation(db, run_id, evaluation_record(20, 0.75))
    at.run()
    assert "Answers: step 10" in words(at)
    assert "1 + 5 = ?" in [each.value for each in at.code]
    assert len(at.dataframe[0].value) == 3


def test_evaluations_of_one_answer_have_no_curve_and_say_what_would_give_one(db: Database) -> None:
    succeeded, *_ = filled(db)
    at = opened(succeeded, "Evaluations")
    assert "With `evaluation.samples` of 2 or more" in words(at)
    assert at.dataframe[0].value["interval"][0] == "7.1–59.1 %"


def test_before_the_first_evaluation_the_tab_says_what_it_waits_for(db: Database) -> None:
    run_id = queue.enqueue(db, load_preset("base-model").config, name="waiting")
    assert "256 × 8 at most" in words(opened(run_id))


def test_the_list_of_runs_and_the_head_bear_a_run_without_steps(db: Database, run_id: str) -> None:
    table = open_page("runs").dataframe[0].value
    assert (table["step"][0], table["progress"][0]) == ("evaluation", 0.0)
    end(db, run_id)
    assert open_page("runs").dataframe[0].value["progress"][0] == 100.0


def test_the_checkpoints_offer_to_evaluate_one(db: Database) -> None:
    succeeded, *_ = filled(db)
    at = opened(succeeded, "Checkpoints")
    next(each for each in at.button if each.label == "Evaluate step 20").click().run()
    assert not at.exception
    assert "Evaluates **quick\\-start**" in at.info[0].value
    assert at.query_params["evaluate"] == succeeded


def test_the_form_of_an_evaluation_is_a_draft_like_any_other_with_its_own_command(db: Database) -> None:
    succeeded, *_ = filled(db)
    at = open_page("new_run", evaluate=succeeded, step="10")
    (button,) = [each for each in at.button if each.label == "Evaluate"]
    at.text_input(key="new_run:evaluation.samples").set_value("16")
    at.selectbox(key="new_run:evaluation.split").set_value("test").run()
    shown = at.code[0].value
    assert shown.split() == [
        *("grpo-lab", "evaluate", f"{succeeded}@10", "\\"),
        *("--set", "evaluation.samples=16", "\\", "--set", "evaluation.split=test"),
    ]
    assert "**136** answers" in "\n".join(each.value for each in at.markdown)
    assert not [each for each in at.caption if each.value.startswith(":material/info:")]
    at.text_input(key="new_run:grpo.steps").set_value("5").run()
    assert "an evaluation trains nothing" in "\n".join(each.value for each in at.markdown)
    assert button.label == "Evaluate"
