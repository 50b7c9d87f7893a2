import math

import pytest

from engine.rollout.protocol import RolloutEngine, SamplingParams
from engine.rollout.transformers_engine import TransformersEngine


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"temperature": 0.0}, "greedy=True"),
        ({"max_tokens": 0}, "at least 1"),
        ({"max_tokens": 4, "min_tokens": 5}, "between 0 and max_tokens=4"),
        ({"stop_strings": ("a", "")}, "empty string"),
        ({"top_p": 0.0}, "top_p=0.0 must lie above 0 and be at most 1"),
        ({"top_p": 1.5}, "top_p=1.5"),
        ({"top_p": math.nan}, "top_p=nan"),
        ({"top_k": 0}, "top_k=0 must be at least 1"),
        ({"min_p": 1.0}, "min_p=1.0 must be at least 0 and below 1"),
        ({"min_p": -0.1}, "min_p=-0.1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty=0.0 must be above 0 and finite"),
        ({"repetition_penalty": math.inf}, "repetition_penalty=inf"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        SamplingParams(**params)


@pytest.mark.parametrize(
    ("params", "sampled", "greedy"),
    [
        ({"temperature": 0.5, "min_tokens": 2}, False, False),
        ({"top_p": 0.9}, True, False),
        ({"top_k": 5}, True, False),
        ({"min_p": 0.1}, True, False),
        ({"repetition_penalty": 1.1}, True, True),
        ({"repetition_penalty": 0.9}, True, True),
    ],
)
def test_it_knows_when_tokens_are_drawn_from_something_else_than_the_softmax(params, sampled, greedy):
    assert SamplingParams(**params).warped is sampled
    assert SamplingParams(**params, greedy=True).warped is greedy


def test_the_transformers_engine_is_a_rollout_engine(model, tokenizer):
    engine: RolloutEngine = TransformersEngine(model, tokenizer)
    assert engine.generate([[5]], n=1, sampling=SamplingParams(max_tokens=1), seed=0)[0][0].finish_reason
    engine.weights_changed(3)
    assert engine.weight_version == 3
