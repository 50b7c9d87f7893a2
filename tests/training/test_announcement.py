from types import SimpleNamespace

import pytest

from engine.config import parse_config
from engine.rewards.gold import GoldFault
from engine.rewards.identity import reward_identity
from engine.tasks.task import load_task
from engine.training.announcement import announce, data_words
from engine.types import Problem

CONFIG = parse_config({"evaluation.size": 4})


class Events:
    """A recorder that keeps the events it is given."""

    def __init__(self):
        self.found: list[tuple[str, str, str]] = []

    def event(self, kind, message, *, step=None, level="info"):
        self.found.append((kind, level, message))


def setup(*, faults: int = 0, held_out: int = 4, step: int = 0):
    problems = [Problem(f"p{number}", "?", "no gold") for number in range(max(faults, held_out))]
    return SimpleNamespace(
        prompt=SimpleNamespace(reward="boxed"),
        task=load_task(CONFIG.task),
        gold_faults=[GoldFault(problem, "no answer") for problem in problems[:faults]],
        held_out=problems[:held_out],
        state=SimpleNamespace(step=step),
    )


def test_the_grader_is_recorded_with_version_and_rule():
    events = Events()
    announce(setup(), CONFIG, events, None)
    assert events.found == [("grader", "info", reward_identity("boxed").message)]


@pytest.mark.parametrize(
    ("before", "warned"),
    [("boxed (rules 0, math-verify 0.9.0)\nother", True), (reward_identity("boxed").headline + "\nother words", False)],
)
def test_a_resumed_attempt_warns_where_the_grader_is_another_and_only_there(before: str, warned: bool):
    events = Events()
    announce(setup(step=6), CONFIG, events, before)
    kinds = [(kind, level) for kind, level, _ in events.found]
    assert kinds == [("grader", "info"), *([("grader_changed", "warning")] if warned else [])]
    if warned:
        assert "from step 7 on, before by boxed (rules 0, math-verify 0.9.0)" in events.found[1][2]


def test_problems_left_out_are_named_up_to_twenty():
    (sentence,) = data_words(setup(faults=23), CONFIG)
    assert sentence.startswith("23 problems are left out")
    assert sentence.endswith("p18, p19 and 3 more.")


def test_fewer_evaluation_problems_than_asked_for_are_counted():
    (sentence,) = data_words(setup(held_out=3), CONFIG)
    assert sentence == "3 problems are evaluated: the split validation has no more (evaluation.size=4)."


def test_what_is_found_in_the_data_is_one_event():
    events = Events()
    announce(setup(faults=1, held_out=3), CONFIG, events, None)
    assert [kind for kind, *_ in events.found] == ["grader", "data"]
    assert "p0." in events.found[1][2]
    assert "3 problems are evaluated" in events.found[1][2]
