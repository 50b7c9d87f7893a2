import pytest
import torch

from engine.rollout.draw import draw_tokens


def evenly(count):
    return (torch.arange(count, dtype=torch.float64) + 0.5) / count


def shares(logits, **options):
    """Share of each token over a thousand evenly spread uniforms."""
    count = 1000
    drawn = draw_tokens(torch.tensor(logits).log().expand(count, -1), evenly(count), **options)
    return torch.bincount(drawn.token_ids, minlength=len(logits)).div(count).tolist()


def test_tokens_are_drawn_in_the_proportions_of_the_softmax():
    assert shares([0.5, 0.2, 0.3], temperature=1.0) == pytest.approx([0.5, 0.2, 0.3])


def test_temperature_sharpens_the_proportions():
    # Squares at temperature 1/2: .25 : .04 : .09
    assert shares([0.5, 0.2, 0.3], temperature=0.5) == pytest.approx([0.25 / 0.38, 0.04 / 0.38, 0.09 / 0.38], abs=1e-3)


def test_a_banned_token_is_never_drawn_and_the_others_keep_their_proportions():
    assert shares([0.5, 0.2, 0.3], temperature=1.0, banned=torch.tensor([0])) == pytest.approx([0, 0.4, 0.6])


def test_a_token_of_probability_zero_is_never_drawn_even_at_the_edges():
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]]).expand(3, -1)
    drawn = draw_tokens(logits, torch.tensor([0.0, 0.5, 1 - 2**-53], dtype=torch.float64), temperature=1.0)
    assert drawn.token_ids.tolist() == [1, 3, 3]


def test_log_probs_are_those_of_the_unmodified_softmax():
    logits = torch.tensor([[0.5, 0.2, 0.3]]).log()
    drawn = draw_tokens(logits, torch.tensor([0.99], dtype=torch.float64), temperature=1.0, banned=torch.tensor([0]))
    assert drawn.log_probs.exp().tolist() == pytest.approx([0.3])


def test_greedy_takes_the_likeliest_that_is_allowed():
    logits = torch.tensor([[0.5, 0.2, 0.3]]).log()
    uniforms = torch.tensor([0.6], dtype=torch.float64)
    assert int(draw_tokens(logits, uniforms, temperature=1.0, greedy=True).token_ids) == 0
    assert int(draw_tokens(logits, uniforms, temperature=1.0, greedy=True, banned=torch.tensor([0])).token_ids) == 2


@pytest.mark.parametrize("vocabulary", [1024, 1025, 3000])
def test_a_large_vocabulary_is_drawn_from_like_a_small_one(vocabulary):
    logits = torch.randn(64, vocabulary, generator=torch.Generator().manual_seed(0)) * 3
    sums = torch.softmax(logits, -1).double().cumsum(-1)
    uniforms = evenly(64)
    expected = torch.searchsorted(sums, (uniforms * sums[:, -1]).unsqueeze(1), right=True).squeeze(1)
    assert draw_tokens(logits, uniforms, temperature=1.0).token_ids.tolist() == expected.tolist()


def test_a_token_of_probability_zero_is_never_drawn_at_the_edge_of_a_block():
    # Each block of 512 begins and ends with such a token, and the uniforms point between two blocks: where one
    # ends by the sum of blocks, the sum within it may have ended a rounding earlier or later.
    logits = torch.randn(64, 3000, generator=torch.Generator().manual_seed(0)) * 8
    logits[:, 0::512] = logits[:, 511::512] = -torch.inf
    blocks = torch.nn.functional.pad(torch.softmax(logits, -1), (0, 72)).view(64, -1, 512)
    sums = blocks.sum(-1, dtype=torch.float64).cumsum(-1)
    for block in range(5):
        uniforms = sums[:, block] / sums[:, -1]
        for towards in (0.0, 1.0):
            nearby = uniforms.clamp(max=1 - 2**-53).nextafter(torch.full_like(uniforms, towards))
            drawn = draw_tokens(logits, nearby.clamp(max=1 - 2**-53), temperature=1.0)
            assert torch.isfinite(drawn.log_probs).all()
