from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from engine.config import RunConfig, parse_config
from engine.policy.policy import Policy
from engine.rollout.protocol import SamplingParams
from engine.tasks.prompts import load_prompt
from engine.training.evaluate import evaluate
from engine.types import Completion, DecodingMode, EvaluationRecord, Problem

PROBLEMS = [Problem("a", "1 + 1 = ?", "2", "validation"), Problem("b", "2 + 3 = ?", "5", "validation")]


@dataclass
class Scripted:
    """A rollout engine that answers by a script, problem by problem, and notes what it was asked for."""

    answers: list[list[str]]
    asked: list[tuple[int, SamplingParams]] = field(default_factory=list)

    def generate(self, prompts: Any, *, n: int, sampling: SamplingParams, seed: int) -> list[list[Completion]]:
        self.asked.append((n, sampling))
        return [[completion(answer) for answer in answers[:n]] for answers in self.answers]


class Letters:
    """A policy of which only the tokenizer is asked."""

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))


def completion(answer: str) -> Completion:
    text = f"so </think> <answer>{answer}</answer>" if answer else "so"
    return Completion(tuple(range(len(text))), text, np.zeros(len(text), np.float32), "stop")


def evaluated(answers: list[list[str]], mode: DecodingMode = "sampled", **settings: Any) -> EvaluationRecord:
    return evaluated_by(Scripted(answers), mode, **settings)


def evaluated_by(engine: Scripted, mode: DecodingMode = "sampled", **settings: Any) -> EvaluationRecord:
    config: RunConfig = parse_config(settings)
    policy: Policy = Letters()  # type: ignore[assignment]
    return evaluate(policy, engine, load_prompt("r1_zero"), PROBLEMS, config, step=3, mode=mode)


def test_one_answer_each_gives_the_accuracy_and_no_pass_at_k():
    record = evaluated([["2"], ["4"]])
    assert set(record.metrics) == {"accuracy", "format", "mean_length", "not_graded"}
    assert (record.metrics["accuracy"], record.metrics["format"]) == (0.5, 1.0)
    assert [answer.sample for answer in record.answers] == [0, 0]


def test_several_answers_give_their_mean_pass_at_k_and_the_majority():
    # Problem a: 2 of 4 right against one other answer given twice, a tie. Problem b: 1 of 4, outvoted by 4 and 4.
    record = evaluated([["2", "2", "3", "3"], ["5", "4", "4", ""]], **{"evaluation.samples": 4})
    assert record.metrics["accuracy"] == 3 / 8
    # 1 − C(2,2)/C(4,2) = 5/6 and 1 − C(3,2)/C(4,2) = 1/2; four answers always hold a right one.
    assert record.metrics["pass@2"] == pytest.approx((5 / 6 + 1 / 2) / 2)
    assert record.metrics["pass@4"] == 1.0
    assert record.metrics["majority@4"] == pytest.approx((1 / 2 + 0) / 2)
    assert record.metrics["format"] == 7 / 8
    assert [(answer.problem.problem_id, answer.sample) for answer in record.answers] == [
        *(("a", sample) for sample in range(4)),
        *(("b", sample) for sample in range(4)),
    ]


def test_k_itself_is_reported_where_it_is_no_power_of_two():
    record = evaluated([["2"] * 6, ["5"] * 6], **{"evaluation.samples": 6})
    assert [name for name in record.metrics if "@" in name] == ["pass@2", "pass@4", "pass@6", "majority@6"]


def test_greedy_decoding_answers_once_and_says_temperature_0():
    record = evaluated([["2", "2"], ["5", "5"]], "greedy", **{"evaluation.samples": 2})
    assert (len(record.answers), record.temperature) == (2, 0.0)
    assert "pass@2" not in record.metrics


def test_the_split_of_the_config_is_recorded():
    assert evaluated([["2"], ["5"]], **{"evaluation.split": "test"}).split == "test"


def test_the_cuts_of_the_rollout_are_left_out_and_the_temperature_is_the_evaluation_s_own():
    engine = Scripted([["2"], ["5"]])
    evaluated_by(
        engine, **{"rollout.top_p": 0.5, "rollout.top_k": 3, "rollout.min_p": 0.1, "evaluation.temperature": 0.7}
    )
    ((_, sampling),) = engine.asked
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.7, 1.0, None, 0.0)
    assert not sampling.warped


def test_an_answer_that_could_not_be_graded_is_not_right_and_is_counted(monkeypatch: pytest.MonkeyPatch):
    def fails_on_three(text: str, gold: str) -> Any:
        from engine.types import Reward

        if "<answer>3<" in text:
            raise TimeoutError
        return Reward(1.0, {"format": 1.0}, gold, "correct")

    choose: Callable[[str], Any] = lambda _: fails_on_three  # noqa: E731
    monkeypatch.setattr("engine.training.evaluate.reward_named", choose)
    record = evaluated([["2", "3"], ["3", "3"]], **{"evaluation.samples": 2})
    assert (record.metrics["accuracy"], record.metrics["not_graded"]) == (0.25, 0.75)
    assert record.metrics["majority@2"] == 0.5
