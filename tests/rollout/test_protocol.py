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
    ],
)
def test_parameters_that_make_no_sense_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        SamplingParams(**params)


def test_the_transformers_engine_is_a_rollout_engine(model, tokenizer):
    engine: RolloutEngine = TransformersEngine(model, tokenizer)
    assert engine.generate([[5]], n=1, sampling=SamplingParams(max_tokens=1), seed=0)[0][0].finish_reason
