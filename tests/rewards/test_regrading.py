import numpy as np
import pytest

from engine.config import RunConfig, parse_config
from engine.rewards.regrading import judge_again, stores_bare_values
from engine.rewards.verifiers import boxed
from engine.types import Completion, Group, Problem, Reward


def group(gold: str, *texts: str) -> Group:
    completions = tuple(Completion((), text, np.zeros(0, np.float32), "eos") for text in texts)
    return Group(Problem(f"p{gold}", "?", gold), "?", (), completions)


def test_every_completion_is_judged_by_the_gold_of_its_group_and_timed():
    judged = judge_again([group("3", r"\boxed{3}", r"\boxed{4}"), group("4", r"\boxed{4}")], boxed)
    assert [each.reward.verdict for each in judged] == ["correct", "wrong", "correct"]
    assert all(each.seconds is not None and each.seconds >= 0 for each in judged)


def test_another_reward_is_judged_as_a_run_judges_by_it():
    def fails(completion: str, gold: str) -> Reward:
        raise ValueError("at line 3")

    (judged,) = judge_again([group("3", "x")], fails)
    assert (judged.reward.verdict, judged.reward.reason) == ("not_graded", "ValueError: at line 3")
    assert judged.seconds is None


@pytest.mark.parametrize(
    ("settings", "bare"),
    [
        ({}, True),
        ({"reward.placebo": "random"}, False),
        ({"reward.answer": 2.0}, False),
        ({"truncation.overlong_buffer": 4}, False),
        ({"kl.beta": 0.1, "kl.placement": "reward", "kl.estimator": "k1"}, True),  # it acts on advantages
    ],
)
def test_stored_values_are_bare_where_nothing_is_paid_beside_the_reward(settings, bare):
    assert stores_bare_values(parse_config(settings) if settings else RunConfig()) is bare
