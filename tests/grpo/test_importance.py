from math import log

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engine.grpo.importance import importance_weights

NAN = float("nan")
CORRECTIONS = ["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
LOG_PROBS = arrays(np.float32, (3, 4), elements=st.floats(-5, 0, width=32))
MASKS = arrays(np.bool_, (3, 4))


def weights(array, policy, sampler, correction, cap=2.0, mask=None):
    mask = array(np.ones((len(policy), len(policy[0]))) if mask is None else mask, "bool")
    return importance_weights(array(np.log(policy)), array(np.log(sampler)), mask, correction=correction, cap=cap)


@pytest.mark.parametrize(
    ("correction", "expected"),
    [
        ("none", [1, 1]),
        ("token_truncate", [2, 0.5]),
        ("token_mask", [0, 0.5]),
        ("sequence_truncate", [1.5, 1.5]),
        ("sequence_mask", [1.5, 1.5]),
    ],
)
def test_a_ratio_of_three_and_one_of_a_half_under_a_cap_of_two(array, correction, expected):
    # 0.6/0.2 = 3 and 0.2/0.4 = 1/2; the sequence's ratio is their product, 3/2.
    found = weights(array, [[0.6, 0.2]], [[0.2, 0.4]], correction)
    assert np.asarray(found.weights)[0].tolist() == pytest.approx(expected)


def test_a_sequence_above_the_cap_goes_as_a_whole(array):
    # 3 · 1 for both tokens of the first row; the second row stays.
    found = weights(array, [[0.6, 0.2], [0.2, 0.2]], [[0.2, 0.2], [0.2, 0.2]], "sequence_mask")
    assert np.asarray(found.weights) == pytest.approx(np.array([[0, 0], [1, 1]]))
    assert np.asarray(found.ratio) == pytest.approx(np.array([[3, 3], [1, 1]]))
    assert np.asarray(found.beyond_cap).tolist() == [[True, True], [False, False]]


def test_the_ratio_is_reported_as_it_was_before_the_cap(array):
    found = weights(array, [[0.6, 0.2]], [[0.2, 0.4]], "token_truncate")
    assert np.asarray(found.ratio)[0].tolist() == pytest.approx([3, 0.5])


def test_of_a_sampler_that_cuts_its_tail_the_ratio_is_the_mass_it_kept(array):
    # p = .5, .3, .2 cut at top-p .8 leaves .5 and .3: the sampler reports .5/.8 = .625.
    found = weights(array, [[0.5]], [[0.625]], "token_truncate")
    assert float(np.asarray(found.ratio)[0, 0]) == pytest.approx(0.8)
    assert log(0.625) == pytest.approx(-0.4700036)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_masked_places_weigh_one_and_do_not_leak(array, correction):
    mask = array([[True, False]], "bool")
    found = importance_weights(array([[-1.0, NAN]]), array([[-1.0, -2.0]]), mask, correction=correction, cap=2.0)
    assert [np.asarray(each)[0].tolist() for each in found] == [[1, 1], [1, 1], [False, False]]


@given(LOG_PROBS, LOG_PROBS, MASKS, st.sampled_from(CORRECTIONS), st.floats(1, 10))
def test_no_weight_is_above_the_cap_or_below_zero_and_numpy_equals_torch(policy, sampler, mask, correction, cap):
    ours = importance_weights(policy, sampler, mask, correction=correction, cap=cap)
    assert (ours.weights >= 0).all()
    assert (ours.weights <= np.float32(cap)).all()
    tensors = [torch.asarray(each.copy()) for each in (policy, sampler, mask)]
    theirs = importance_weights(*tensors, correction=correction, cap=cap)
    np.testing.assert_allclose(ours.ratio, theirs.ratio.numpy(), rtol=1e-5)


@given(LOG_PROBS, MASKS, st.sampled_from(CORRECTIONS))
def test_where_sampler_and_policy_agree_every_weight_is_exactly_one(log_probs, mask, correction):
    assert (importance_weights(log_probs, log_probs, mask, correction=correction, cap=2.0).weights == 1).all()
