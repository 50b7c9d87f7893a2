import math

import numpy as np
import pytest

from engine.rewards import grading
from engine.rewards.pool import GraderPool
from engine.rewards.scoring import score_groups
from engine.rewards.verifiers import answer_tag, boxed
from engine.types import Completion, Group, Problem, Reward


def _group(gold: str, *texts: str) -> Group:
    completions = tuple(Completion((5,), text, np.zeros(1, dtype=np.float32), "eos") for text in texts)
    return Group(Problem(f"p-{gold}", "What is it?", gold), "What is it?", (7,), completions)


RIGHT, WRONG = "</think> <answer> 3 </answer>", "</think> <answer> 4 </answer>"


def test_each_completion_is_scored_against_the_gold_answer_of_its_own_group():
    rewards_P_G = score_groups([_group("3", RIGHT, WRONG), _group("4", RIGHT, WRONG)], answer_tag)
    assert [[reward.value for reward in group] for group in rewards_P_G] == [[1.0, 0.0], [0.0, 1.0]]


def test_a_reward_that_raises_costs_one_completion_and_leaves_its_reason():
    def fails_on_wrong(completion: str, gold: str) -> Reward:
        if completion == WRONG:
            raise ValueError("cannot parse")
        return answer_tag(completion, gold)

    ((first, second, third),) = score_groups([_group("3", RIGHT, WRONG, RIGHT)], fails_on_wrong)
    assert (first.value, third.value) == (1.0, 1.0)
    assert (second.value, second.verdict, second.reason) == (None, "not_graded", "ValueError: cannot parse")


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (1.0, "the reward function returned float, not Reward"),
        (None, "the reward function returned NoneType, not Reward"),
        (Reward(math.nan, {}, None, "wrong"), "value nan is not finite"),
        (Reward(None, {}, None, "wrong"), "value None does not go with verdict 'wrong'"),
        (Reward(0.0, {}, None, "not_graded"), "value 0.0 does not go with verdict 'not_graded'"),
    ],
)
def test_a_reward_that_breaks_its_contract_is_not_graded(returned, reason):
    ((reward,),) = score_groups([_group("3", RIGHT)], lambda completion, gold: returned)
    assert (reward.value, reward.verdict, reward.reason) == (None, "not_graded", reason)


def test_an_interrupt_is_not_taken_for_a_failed_reward():
    def interrupted(completion: str, gold: str) -> Reward:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        score_groups([_group("3", RIGHT)], interrupted)


def test_a_verifier_scores_the_whole_batch_and_gold_that_cannot_be_read_costs_its_own_group():
    boxes = [r"\boxed{\sqrt{12}}", r"\boxed{5}"]
    groups = [_group(r"2\sqrt{3}", *boxes), _group("", *boxes), _group("5", *boxes)]
    rewards_P_G = score_groups(groups, boxed)
    assert [[reward.value for reward in group] for group in rewards_P_G] == [[1.0, 0.0], [None, None], [0.0, 1.0]]
    assert rewards_P_G[1][0].reason.startswith("RewardError: gold: '' is not an answer")


def test_an_answer_that_cannot_be_worked_out_is_not_graded_and_the_rest_of_its_group_is(
    monkeypatch: pytest.MonkeyPatch,
):
    with GraderPool(2, seconds=1) as pool:
        monkeypatch.setattr(grading, "shared_pool", lambda: pool)
        ((hangs, right),) = score_groups([_group("x+1", r"\boxed{(10!)!}", r"\boxed{1+x}")], boxed)
    assert (hangs.value, hangs.verdict, hangs.reason) == (None, "not_graded", "stopped after 1 s")
    assert right.value == 1.0
