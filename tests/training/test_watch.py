from dataclasses import dataclass, field

import pytest

from engine.config import parse_config
from engine.training.watch import DIFFERENCE, RATIO, StepWatch, likely_cause


@dataclass
class Events:
    """A recorder that keeps events."""

    told: list[tuple[str, int, str]] = field(default_factory=list)

    def event(self, kind, message, *, step=None, level="info"):
        assert level == "warning"
        self.told.append((kind, step, message))


def watched(steps: list[tuple[float, float]], **settings) -> list[tuple[str, int, str]]:
    events = Events()
    watch = StepWatch(parse_config(settings), events)
    for step, (difference, ratio) in enumerate(steps, 1):
        watch.look({DIFFERENCE: difference, RATIO: ratio}, step=step)
    return events.told


def test_rounding_is_no_mismatch():
    assert watched([(4e-7, 1.0), (2e-6, 1.0)]) == []
    assert watched([(3e-2, 1.0)] * 3, **{"model.dtype": "bfloat16"}) == []


def test_a_jump_far_above_what_the_run_has_shown_points_at_stale_weights_and_is_told_once():
    ((kind, step, message),) = watched([(1e-6, 1.0), (2e-6, 1.0), (0.24, 0.98), (0.3, 0.97)])
    assert (kind, step) == ("sampler_mismatch", 3)
    assert "mean |difference| of their log-probs 0.24 nats, before 1.5e-06, mean ratio 0.98" in message
    assert "weights that did not reach the sampler" in message


def test_a_ratio_outside_its_band_is_told_from_the_first_step_on():
    ((_, step, message),) = watched([(0.4, 0.7)], **{"rollout.top_p": 0.8})
    assert step == 1
    assert "mean ratio 0.7 (usually 0.85 to 1.15). Likely cause: top_p, top_k" in message


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({"rollout.min_p": 0.1}, "another distribution than the policy's"),
        (
            {"rollout.engine": "vllm", "vllm.sampler_dtype": "bfloat16"},
            "number format bfloat16, where the trainer has float32",
        ),
        ({"rollout.min_tokens": 4}, "min_tokens=4"),
        ({"rollout.temperature": 0.6}, "another temperature than 0.6"),
        ({"model.dtype": "bfloat16"}, "rounding in bfloat16"),
        ({}, "two programs of one model"),
    ],
)
def test_the_likely_cause_follows_from_the_config(settings, cause):
    assert cause in likely_cause(parse_config(settings), jumped=False)


def test_completions_that_nearly_all_reach_the_limit_are_told_once():
    events = Events()
    watch = StepWatch(parse_config({"rollout.max_tokens": 40}), events)
    for step, share in enumerate((0.5, 0.95, 1.0), 1):
        watch.look({"completions/clipped_ratio": share}, step=step)
    ((kind, step, message),) = events.told
    assert (kind, step) == ("length_limit", 2)
    assert message.startswith("95% of the completions were cut off at max_tokens=40")
