import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.grpo.aggregation import AggregationTotals, aggregate, aggregation_totals, aggregation_weights
from engine.grpo.loss import LOSSES
from engine.grpo.masking import response_mask

NAN = float("nan")
SPLIT_FREE = ["mean", "constant", "token"]


class TestByHand:
    def test_weights_of_rows_of_one_and_three_tokens(self, array):
        mask = response_mask(array([1, 3], "int64"), 4)
        totals = aggregation_totals(mask)
        assert totals == AggregationTotals(sequences=2, tokens=4)

        def weights(mode):
            rows = np.asarray(aggregation_weights(mask, mode, totals=totals, constant=10))
            assert not rows[~np.asarray(mask)].any()
            return rows[:, 0].tolist()

        assert weights("mean") == pytest.approx([1 / 2, 1 / 6])
        assert weights("constant") == pytest.approx([1 / 20, 1 / 20])
        assert weights("token") == pytest.approx([1 / 4, 1 / 4])
        assert weights("microbatch") == pytest.approx([1 / 6, 1 / 6])

    def test_the_token_mean_of_unequal_lengths_is_over_all_tokens(self, array):
        # Ratio 1, advantages 1 and -1: token losses -1 and +1, one against three.
        mask = response_mask(array([1, 3], "int64"), 3)
        losses = array([[-1, NAN, NAN], [1, 1, 1]])
        weights = aggregation_weights(mask, "token", totals=aggregation_totals(mask))
        assert float(aggregate(losses, weights)) == 0.5

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_micro_batches_add_up_to_the_mean_over_the_whole_step(self, array, order):
        # Two tokens of loss 1, six of loss 3: (2 + 18) / 8. The mean of the means would be 2.
        parts = [array([[1, 1]]), array([[3, 3, 3], [3, 3, 3]])]
        masks = [array(np.ones(part.shape), "bool") for part in parts]
        totals = AggregationTotals(sequences=3, tokens=8)
        loss = sum(float(aggregate(parts[i], aggregation_weights(masks[i], "token", totals=totals))) for i in order)
        assert loss == pytest.approx(2.5)

    def test_a_row_without_tokens_weighs_nothing_and_is_not_counted(self, array):
        mask = response_mask(array([2, 0], "int64"), 2)
        totals = aggregation_totals(mask)
        assert totals.sequences == 1
        for mode in ("mean", "constant", "token", "microbatch"):
            weights = np.asarray(aggregation_weights(mask, mode, totals=totals, constant=2))
            assert weights.tolist() == [[0.5, 0.5], [0, 0]]

    def test_a_step_without_any_token_has_loss_zero(self, array):
        mask = response_mask(array([0, 0], "int64"), 2)
        for mode in ("mean", "constant", "token", "microbatch"):
            weights = aggregation_weights(mask, mode, totals=aggregation_totals(mask), constant=2)
            assert float(aggregate(array([[NAN, NAN], [NAN, NAN]]), weights)) == 0.0

    def test_constant_needs_a_length(self, array):
        mask = response_mask(array([1], "int64"), 1)
        for constant in (None, 0):
            with pytest.raises(ValueError, match="at least 1 token"):
                aggregation_weights(mask, "constant", totals=AggregationTotals(1, 1), constant=constant)


def gradient(lengths, mode, parts):
    """Gradient of the aggregated loss of rows of `lengths`, computed in `parts` micro-batches of their own width."""
    width = max(lengths)
    values = torch.randn(len(lengths), width, generator=torch.Generator().manual_seed(1)).requires_grad_()
    totals = aggregation_totals(response_mask(torch.tensor(lengths), width))
    size = len(lengths) // parts
    for start in range(0, len(lengths), size):
        own = torch.tensor(lengths[start : start + size])
        own_width = int(own.max())
        mask = response_mask(own, own_width)
        weights = aggregation_weights(mask, mode, totals=totals, constant=width)
        aggregate(values[start : start + size, :own_width] ** 2, weights).backward()
    return values.grad


@pytest.mark.parametrize("mode", SPLIT_FREE)
@given(st.lists(st.integers(1, 9), min_size=8, max_size=8))
def test_the_split_into_micro_batches_never_changes_the_gradient(mode, lengths):
    whole = gradient(lengths, mode, 1)
    for parts in (2, 4, 8):
        torch.testing.assert_close(gradient(lengths, mode, parts), whole, rtol=1e-6, atol=1e-7)


LOSS_SETTINGS = [
    ("reinforce_with_baseline", {}),
    ("grpo_no_clip", {}),
    ("grpo_clip", {}),
    ("grpo_clip", {"dual_clip": 1.1}),
    ("grpo_clip", {"ratio_level": "sequence", "clip_eps_low": 0.02, "clip_eps_high": 0.03}),
    ("cispo", {}),
    ("cispo", {"ratio_level": "sequence"}),
]


@pytest.mark.parametrize("mode", SPLIT_FREE)
@pytest.mark.parametrize(("name", "settings"), LOSS_SETTINGS)
def test_no_loss_sees_how_the_step_was_split(mode, name, settings):
    random = torch.Generator().manual_seed(3)
    lengths = torch.tensor([3, 9, 1, 5, 2, 7, 4, 6])
    old = -torch.rand(8, 9, generator=random, dtype=torch.float64) - 0.5
    values = old + 0.3 * torch.randn(8, 9, generator=random, dtype=torch.float64)
    advantages = torch.randn(8, generator=random, dtype=torch.float64)
    totals = aggregation_totals(response_mask(lengths, 9))

    def gradient_in(parts):
        log_probs = values.clone().requires_grad_()
        for rows in torch.arange(8).chunk(parts):
            width = int(lengths[rows].max())
            mask = response_mask(lengths[rows], width)
            loss = LOSSES[name](
                log_probs[rows, :width], advantages[rows], mask, old_log_probs=old[rows, :width], **settings
            ).loss
            aggregate(loss, aggregation_weights(mask, mode, totals=totals, constant=12)).backward()
        return log_probs.grad

    whole = gradient_in(1)
    assert float(whole.norm()) > 0
    for parts in (2, 4, 8):
        assert float((gradient_in(parts) - whole).norm() / whole.norm()) < 1e-6


def test_only_the_microbatch_mode_depends_on_the_split():
    lengths = [1, 1, 4, 4]
    assert not torch.allclose(gradient(lengths, "microbatch", 1), gradient(lengths, "microbatch", 2))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.sampled_from([*SPLIT_FREE, "microbatch"]))
def test_numpy_and_torch_agree(lengths, mode):
    mask = np.arange(6)[None, :] < np.array(lengths)[:, None]
    ours = aggregation_weights(mask, mode, totals=aggregation_totals(mask), constant=6)
    other = torch.asarray(mask)
    theirs = aggregation_weights(other, mode, totals=aggregation_totals(other), constant=6)
    assert ours.dtype == np.float32
    assert theirs.dtype == torch.float32
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-6)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_mean_and_token_weights_add_up_to_one(lengths):
    mask = np.arange(6)[None, :] < np.array(lengths)[:, None]
    for mode in ("mean", "token"):
        total = aggregation_weights(mask, mode, totals=aggregation_totals(mask)).sum()
        assert total == pytest.approx(1.0 if any(lengths) else 0.0)
