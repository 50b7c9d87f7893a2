import math

import pytest
import torch

from engine.rollout.draw import draw_tokens
from engine.rollout.protocol import SamplingParams
from engine.rollout.warp import Warp

CPU = torch.device("cpu")
NEVER = 0.0


def warp(prompt=(0,), **params):
    return Warp(SamplingParams(**params), [prompt], CPU)


def kept(probabilities, banned=None, **params):
    """The probabilities that tokens are drawn with, given those of the model."""
    banned = None if banned is None else torch.tensor(banned)
    return torch.softmax(warp(**params).scores(torch.tensor([probabilities]).log(), banned), -1)[0].tolist()


def test_top_p_keeps_the_fewest_tokens_that_reach_it():
    assert kept([0.3, 0.5, 0.2], top_p=0.7) == pytest.approx([0.375, 0.625, NEVER])  # .5 < .7 <= .8
    assert kept([0.3, 0.5, 0.2], top_p=0.5) == pytest.approx([NEVER, 1.0, NEVER])
    assert kept([0.3, 0.5, 0.2], top_p=0.9) == pytest.approx([0.3, 0.5, 0.2])
    assert kept([0.3, 0.5, 0.2], top_p=1e-9) == pytest.approx([NEVER, 1.0, NEVER])


def test_top_k_keeps_that_many():
    assert kept([0.3, 0.5, 0.2], top_k=2) == pytest.approx([0.375, 0.625, NEVER])
    assert kept([0.3, 0.5, 0.2], top_k=1) == pytest.approx([NEVER, 1.0, NEVER])
    assert kept([0.3, 0.5, 0.2], top_k=99) == pytest.approx([0.3, 0.5, 0.2])


def test_min_p_keeps_what_is_at_least_that_share_as_likely_as_the_likeliest():
    # The least is .4 * .5 = .2.
    assert kept([0.3, 0.5, 0.15, 0.05], min_p=0.4) == pytest.approx([0.375, 0.625, NEVER, NEVER])


def test_top_p_counts_what_top_k_has_left():
    # Of .4 and .3 after top-k, .4 is 57 % and enough; of all four it would not be.
    assert kept([0.4, 0.3, 0.2, 0.1], top_k=2, top_p=0.5) == pytest.approx([1.0, NEVER, NEVER, NEVER])
    assert kept([0.4, 0.3, 0.2, 0.1], top_p=0.5) == pytest.approx([4 / 7, 3 / 7, NEVER, NEVER])


def test_the_temperature_comes_before_the_cut():
    # Squared at temperature 1/2: .25, .09, .04 of .38, so that the first alone has 66 %; before, it took two.
    assert kept([0.5, 0.3, 0.2], top_p=0.6, temperature=0.5) == pytest.approx([1.0, NEVER, NEVER])
    assert kept([0.5, 0.3, 0.2], top_p=0.6) == pytest.approx([0.625, 0.375, NEVER])


def test_a_banned_token_takes_no_place_among_those_that_are_kept():
    assert kept([0.5, 0.3, 0.2], banned=[0], top_k=1) == pytest.approx([NEVER, 1.0, NEVER])
    assert kept([0.5, 0.3, 0.2], banned=[0], top_p=0.5) == pytest.approx([NEVER, 1.0, NEVER])


def test_the_repetition_penalty_divides_what_is_above_zero_and_multiplies_what_is_below():
    logits = torch.tensor([[2.0, -1.0, 2.0, -1.0]])
    assert warp((0, 1), repetition_penalty=2.0).scores(logits).tolist() == [[1.0, -2.0, 2.0, -1.0]]
    assert warp((0, 1, 1, 0), repetition_penalty=2.0).scores(logits).tolist() == [[1.0, -2.0, 2.0, -1.0]]


def test_the_repetition_penalty_comes_before_temperature_and_cut():
    # 3 / 2 = 1.5 falls behind 2, and the temperature then doubles what is left.
    scores = warp((0,), repetition_penalty=2.0, temperature=0.5, top_k=1).scores(torch.tensor([[3.0, 2.0, 1.0]]))
    assert scores.tolist() == [[-math.inf, 4.0, -math.inf]]


def test_what_has_been_drawn_is_penalised_from_then_on():
    bent = warp((0,), repetition_penalty=2.0)
    logits = torch.tensor([[2.0, 2.0, 2.0]])
    assert bent.scores(logits).tolist() == [[1.0, 2.0, 2.0]]
    bent.take(torch.tensor([2]))
    assert bent.scores(logits).tolist() == [[1.0, 2.0, 1.0]]


def test_rows_of_different_length_are_penalised_for_their_own_tokens_alone():
    bent = Warp(SamplingParams(repetition_penalty=2.0), [(1,), (2, 3, 2), (4, 1)], CPU)
    logits = torch.full((3, 6), 2.0)
    bent.take(torch.tensor([5, 5, 0]))
    assert bent.scores(logits).tolist() == [
        [2.0, 1.0, 2.0, 2.0, 2.0, 1.0],
        [2.0, 2.0, 1.0, 1.0, 2.0, 1.0],
        [1.0, 1.0, 2.0, 2.0, 1.0, 2.0],
    ]
    bent.shrink(torch.tensor([2]))
    assert bent.scores(logits[:1]).tolist() == [[1.0, 1.0, 2.0, 2.0, 1.0, 2.0]]


def test_a_greedy_choice_is_penalised_and_not_cut():
    scores = warp((0,), repetition_penalty=2.0, top_k=1, top_p=0.1, min_p=0.9, greedy=True)
    assert scores.scores(torch.tensor([[3.0, 2.0, 1.0]])).tolist() == [[1.5, 2.0, 1.0]]


def test_the_ratio_of_policy_to_sampler_is_the_mass_that_was_kept():
    logits = torch.tensor([[0.5, 0.3, 0.2]]).log()
    drawn = draw_tokens(warp(top_p=0.8).scores(logits), torch.tensor([0.0], dtype=torch.float64), temperature=1.0)
    assert drawn.token_ids.tolist() == [0]
    assert drawn.log_probs.tolist() == pytest.approx([math.log(0.625)])
    assert math.exp(math.log(0.5) - drawn.log_probs.item()) == pytest.approx(0.8)


@pytest.mark.parametrize("params", [{"top_p": 0.6}, {"top_k": 40}, {"min_p": 0.2}, {"top_k": 40, "top_p": 0.6}])
@pytest.mark.parametrize("vocabulary", [100, 3000])
def test_draws_never_leave_the_kept_tokens_whose_log_probs_sum_to_one(params, vocabulary):
    count = 2000
    logits = torch.randn(1, vocabulary, generator=torch.Generator().manual_seed(1)) * 2
    scores = warp(**params).scores(logits)
    allowed = torch.isfinite(scores[0])
    assert 1 < int(allowed.sum()) < vocabulary
    uniforms = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    drawn = draw_tokens(scores.expand(count, -1), uniforms, temperature=1.0)
    assert allowed[drawn.token_ids].all()
    log_prob_of = dict(zip(*map(torch.Tensor.tolist, drawn), strict=True))
    # The least likely may be missed by 2000 draws; what was drawn has the rest of the mass.
    assert sum(map(math.exp, log_prob_of.values())) == pytest.approx(1.0, abs=0.05)
    assert torch.log_softmax(scores, -1)[0, allowed].exp().sum().item() == pytest.approx(1.0, abs=1e-5)
