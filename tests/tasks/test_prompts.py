import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import TaskError
from engine.tasks import prompts
from engine.tasks.prompts import load_prompt


def test_r1_zero_is_the_published_text_and_leaves_the_reasoning_open():
    assert load_prompt("r1_zero").render("What is 1 + 1?") == (
        "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. "
        "The Assistant first thinks about the reasoning process in the mind and then provides the User with "
        "the answer. The reasoning process is enclosed within <think> </think> and answer is enclosed within "
        "<answer> </answer> tags, respectively, i.e., <think> reasoning process here </think> <answer> answer "
        "here </answer>.\nUser: What is 1 + 1?\nAssistant: <think>"
    )


def test_question_only_is_the_question_alone():
    assert load_prompt("question_only").render("What is 1 + 1?") == "What is 1 + 1?"


def test_each_prompt_brings_its_reward_and_its_stop_strings():
    assert (load_prompt("r1_zero").reward, load_prompt("r1_zero").stop_strings) == ("answer_tag", ("</answer>",))
    assert (load_prompt("question_only").reward, load_prompt("question_only").stop_strings) == ("boxed", ())


@given(st.text())
def test_a_question_with_braces_comes_through_unchanged(question):
    assert load_prompt("question_only").render(question) == question
    assert f"\nUser: {question}\nAssistant: <think>" in load_prompt("r1_zero").render(question)


def test_a_question_that_holds_the_placeholder_is_not_filled_again():
    assert load_prompt("question_only").render("Write {question} and {0}.") == "Write {question} and {0}."


def test_an_unknown_prompt_is_refused_with_the_known_ones():
    with pytest.raises(TaskError, match=r"^prompt: 'r2_zero' .* question_only, r1_zero"):
        load_prompt("r2_zero")


def test_a_prompt_file_without_a_place_for_the_question_is_refused(tmp_path, monkeypatch):
    (tmp_path / "r1_zero.txt").write_text("Solve it.")
    monkeypatch.setattr(prompts, "PROMPT_FOLDER", tmp_path)
    with pytest.raises(TaskError, match=r"holds \{question\} 0 times"):
        load_prompt("r1_zero")
