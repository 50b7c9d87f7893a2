import json

import pytest

from engine.errors import TaskError
from engine.tasks.gym_reward import reasoning_gym

pytest.importorskip("reasoning_gym", reason="reasoning-gym is an extra")


def gold(generator="chain_sum", answer="12", **metadata) -> str:
    document = {"verifier": "reasoning_gym", "generator": generator, "options": {}}
    return json.dumps({**document, "answer": answer, "metadata": metadata})


def test_the_right_answer_in_its_tag_is_worth_one():
    reward = reasoning_gym("7 + 5 is 12.</think> <answer> 12 </answer>", gold())
    assert (reward.value, reward.verdict, reward.answer) == (1.0, "correct", "12")
    assert reward.parts == {"format": 1.0, "answer": 1.0}


def test_another_answer_is_wrong_and_the_reason_names_the_generators():
    reward = reasoning_gym("<answer>13</answer>", gold())
    assert (reward.value, reward.verdict) == (0.0, "wrong")
    assert reward.reason == "the verifier gives 0, whose own answer is 12"


def test_part_of_a_score_is_paid_but_not_called_correct():
    reward = reasoning_gym("<answer>12 apples</answer>", gold())
    assert reward.value == pytest.approx(2 / 9)
    assert (reward.verdict, reward.parts["answer"]) == ("wrong", reward.value)


def test_the_last_tag_counts():
    assert reasoning_gym("<answer>12</answer> No: <answer>13</answer>", gold()).answer == "13"


def test_without_a_tag_nothing_is_read():
    reward = reasoning_gym("It is 12.", gold())
    assert (reward.value, reward.verdict, reward.answer) == (0.0, "unreadable", None)
    assert reward.parts["format"] == 0.0


def test_an_answer_on_which_the_verifier_raises_is_unreadable_and_worth_nothing():
    document = gold("prime_factorization", "2 × 3", number=6, factors=[2, 3])
    assert reasoning_gym("<answer>2 × 3</answer>", document).verdict == "correct"
    reward = reasoning_gym("<answer>two</answer>", document)
    assert (reward.value, reward.verdict, reward.answer) == (0.0, "unreadable", "two")
    assert "ValueError" in reward.reason


def test_the_gold_answer_of_another_task_is_an_error_and_no_wrong_answer():
    for other in ("12", '"12"', '{"answer": "12"}', "#### 12"):
        with pytest.raises(TaskError, match="names no verifier"):
            reasoning_gym("<answer>12</answer>", other)
