"""Runs under composed rewards, placebos and rewards of the person's own."""

from dataclasses import dataclass, field

import pytest

from engine.config import parse_config
from engine.errors import RewardError
from engine.rewards import own
from engine.rewards.pool import GraderPool
from engine.training.checkpoint import latest_checkpoint, step_of
from engine.training.loop import StartPoint, train
from engine.types import EvaluationRecord, StepRecord

SMALL = {
    "grpo.steps": 3,
    "rollout.rollout_batch_size": 16,
    "rollout.group_size": 4,
    "evaluation.every": 3,
    "evaluation.size": 8,
    "evaluation.greedy": False,
    "checkpoints.every": 1,
}


@dataclass
class Notes:
    """A recorder that keeps what it is given."""

    steps: list[StepRecord] = field(default_factory=list)
    evaluations: list[EvaluationRecord] = field(default_factory=list)
    events: list[tuple[str, str, int | None, str]] = field(default_factory=list)

    def step(self, record):
        self.steps.append(record)

    def evaluation(self, record):
        self.evaluations.append(record)

    def event(self, kind, message, *, step=None, level="info"):
        self.events.append((kind, message, step, level))

    def checkpoint(self, step, path, accuracy=None): ...

    def delete_checkpoints(self, steps): ...

    def mark_best(self, step): ...

    def flush(self, timeout):
        return True

    def rewards(self, step: int):
        return [member.reward for group in self.steps[step].groups for member in group.completions]

    def texts(self, step: int):
        return [member.completion.text for group in self.steps[step].groups for member in group.completions]


def run(folder, notes=None, *, start=None, stop=lambda _: False, **settings) -> Notes:
    notes = notes or Notes()
    config = parse_config(SMALL | settings)
    train(config, recorder=notes, folder=folder, threads=1, stop=lambda: stop(notes), start=start)
    return notes


def test_the_random_placebo_changes_what_is_paid_and_neither_the_samples_nor_the_verdicts(tmp_path):
    plain = run(tmp_path / "a", **{"grpo.steps": 1})
    placebo = run(tmp_path / "b", **{"grpo.steps": 1, "reward.placebo": "random"})
    assert placebo.texts(0) == plain.texts(0)
    assert [each.verdict for each in placebo.rewards(0)] == [each.verdict for each in plain.rewards(0)]
    paid = [each.value for each in placebo.rewards(0)]
    assert set(paid) == {0.0, 1.0}
    assert paid != [each.value for each in plain.rewards(0)]
    assert paid == [each.parts["placebo"] for each in placebo.rewards(0)]
    assert placebo.evaluations[0].metrics == plain.evaluations[0].metrics
    assert "placebo" not in placebo.evaluations[0].answers[0].reward.parts


def test_a_resumed_run_pays_what_the_whole_one_does(tmp_path):
    settings = {"reward.placebo": "random", "reward.length": 0.5}
    whole = run(tmp_path / "whole", **settings)
    first = run(tmp_path / "cut", stop=lambda notes: len(notes.steps) == 2, **settings)
    path = latest_checkpoint(tmp_path / "cut" / "checkpoints")
    rest = run(tmp_path / "cut", start=StartPoint(path, step_of(path)), **settings)
    assert [len(first.steps), len(rest.steps)] == [2, 1]
    assert rest.rewards(0) == whole.rewards(2)


def test_a_placebo_that_pays_all_alike_leaves_the_policy_where_it_is(tmp_path):
    notes = run(tmp_path, **{"reward.placebo": "always_one", "grpo.steps": 1})
    assert notes.steps[0].metrics["grad_norm"] == 0.0
    assert notes.steps[0].metrics["frac_reward_zero_std"] == 1.0


def test_under_a_cost_a_group_of_wrong_answers_is_mixed_and_still_has_none_right(tmp_path):
    notes = run(tmp_path, **{"reward.length": 1.0, "task.largest_operand": 999, "grpo.steps": 1})
    groups = [group for record in notes.steps for group in record.groups]
    wrong = [group for group in groups if not any(each.reward.verdict == "correct" for each in group.completions)]
    assert [group.kind for group in wrong if len({len(each.completion.token_ids) for each in group.completions}) > 1]
    for group in wrong:
        lengths = {len(each.completion.token_ids) for each in group.completions}
        assert group.kind == ("mixed" if len(lengths) > 1 else "all_wrong")


PICKY = """
from engine.types import Reward

def reward(completion, gold, problem):
    if {condition}:
        raise ValueError(f"no sense in {{completion!r}}")
    right = gold in completion and problem.gold == gold
    return Reward(float(right), {{"mine": 0.5}}, None, "correct" if right else "wrong")
"""


@pytest.fixture(scope="module")
def pool():
    with GraderPool(1, own=True) as pool:
        yield pool


class TestOwn:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path, monkeypatch, pool):
        monkeypatch.setenv("GRPO_LAB_REWARDS_DIR", str(tmp_path))
        monkeypatch.setattr(own, "_pool", pool)
        return tmp_path

    def test_it_rewards_training_and_evaluation_and_its_parts_are_logged(self, folder):
        (folder / "picky.py").write_text(PICKY.format(condition="False"))
        notes = run(folder / "run", **{"prompt.reward": "own:picky", "grpo.steps": 1})
        assert notes.steps[0].metrics["rewards/mine/mean"] == 0.5
        assert notes.evaluations[0].answers[0].reward.parts == {"mine": 0.5}
        assert notes.evaluations[0].metrics["accuracy"] > 0
        assert [event[0] for event in notes.events] == ["grader"]
        assert "own:picky (sha256 " in notes.events[0][1]

    def test_a_step_of_which_too_much_is_not_graded_is_stored_and_ends_the_run(self, folder):
        (folder / "picky.py").write_text(PICKY.format(condition="True"))
        notes = Notes()
        with pytest.raises(RewardError) as caught:
            run(folder / "run", notes, **{"prompt.reward": "own:picky"})
        assert str(caught.value).startswith(
            "stopping.max_not_graded=0.25: 16 of the 16 completions of step 1 (100%) were not graded, "
        )
        assert "(picky.py line 6). Correct the reward" in str(caught.value)
        assert [record.metrics["rewards/not_graded"] for record in notes.steps] == [1.0]
        assert all(each.verdict == "not_graded" for each in notes.rewards(0))

    def test_below_the_limit_each_reason_is_told_once(self, folder):
        (folder / "picky.py").write_text(PICKY.format(condition="len(completion) % 2"))
        notes = run(folder / "run", **{"prompt.reward": "own:picky", "stopping.max_not_graded": 1.0})
        assert len(notes.steps) == 3
        assert min(record.metrics["rewards/not_graded"] for record in notes.steps) > 0
        ((kind, message, step, level),) = [event for event in notes.events if event[0] != "grader"]
        assert (kind, step, level) == ("not_graded", 1, "warning")
        assert "of 16 completions were not graded: ValueError: no sense in '" in message

    def test_a_file_that_cannot_be_loaded_ends_the_run_before_it_begins(self, folder):
        (folder / "picky.py").write_text("def reward(:")
        notes = Notes()
        with pytest.raises(RewardError, match=r"own:picky cannot be loaded: SyntaxError: .* \(picky.py line 1\)"):
            run(folder / "run", notes, **{"prompt.reward": "own:picky"})
        assert (notes.steps, notes.evaluations) == ([], [])
