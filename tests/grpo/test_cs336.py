"""The course's functions, called by their public names, on numbers that can be checked by hand."""

from math import isnan, log

import numpy as np
import pytest
import torch

import engine.grpo
from engine.grpo import (
    compute_entropy,
    compute_group_normalized_rewards,
    compute_grpo_clip_loss,
    compute_naive_policy_gradient_loss,
    compute_policy_gradient_loss,
    get_response_log_probs,
    grpo_microbatch_train_step,
    masked_mean,
    masked_normalize,
    sft_microbatch_train_step,
    tokenize_prompt_and_output,
)


class Letters:
    """A tokenizer that numbers the letters from 1 and adds a start token unless told not to."""

    pad_token_id: int | None = 0
    eos_token_id: int | None = 99

    def encode(self, text, *, add_special_tokens=True):
        return ([98] if add_special_tokens else []) + [ord(letter) - 96 for letter in text]


class FixedLogits(torch.nn.Module):
    """A model that gives the same logits at every place: p = 1/2, 1/4, 1/4."""

    def forward(self, input_ids):
        logits = torch.tensor([log(2), 0.0, 0.0]).expand(*input_ids.shape, 3)
        return type("Output", (), {"logits": logits})()


def reward(response, truth):
    right = float(response == truth)
    return {"reward": right, "format_reward": 1.0, "answer_reward": right}


def log_probs_of_ratios(*ratios):
    """Log-probs with gradient and old ones, whose ratios are the given rows."""
    old = torch.full((len(ratios), len(ratios[0])), -2.0)
    return (old + torch.log(torch.tensor(ratios))).requires_grad_(), old


class TestTokenizing:
    def test_prompt_and_output_are_joined_padded_and_shifted(self):
        found = tokenize_prompt_and_output(["ab", "c"], ["cd", "e"], Letters())
        assert found["input_ids"].tolist() == [[1, 2, 3], [3, 5, 0]]
        assert found["labels"].tolist() == [[2, 3, 4], [5, 0, 0]]
        assert found["response_mask"].tolist() == [[False, True, True], [True, False, False]]

    def test_without_a_pad_token_the_end_token_pads_and_is_still_masked(self):
        tokenizer = Letters()
        tokenizer.pad_token_id = None
        found = tokenize_prompt_and_output(["ab", "c"], ["cd", "e"], tokenizer)
        assert found["labels"].tolist()[1] == [5, 99, 99]
        assert found["response_mask"].tolist()[1] == [True, False, False]
        tokenizer.eos_token_id = None
        with pytest.raises(ValueError, match="neither a pad token nor an end token"):
            tokenize_prompt_and_output(["a"], ["b"], tokenizer)

    def test_an_empty_output_has_no_response(self):
        assert not tokenize_prompt_and_output(["abc"], [""], Letters())["response_mask"].any()

    def test_every_prompt_needs_an_output(self):
        with pytest.raises(ValueError, match="2 prompts and 1 outputs"):
            tokenize_prompt_and_output(["a", "b"], ["c"], Letters())


class TestRewards:
    def test_a_group_is_centred_and_divided_by_its_sample_std(self):
        # 1, 0, 0, 1: mean 1/2, sample std sqrt(1/3). The second group is flat.
        responses = ["y", "n", "n", "y", "n", "n", "n", "n"]
        advantages, raw, metadata = compute_group_normalized_rewards(reward, responses, ["y"] * 8, 4, 1e-4, True)
        assert advantages.tolist() == pytest.approx([0.8658754, -0.8658754, -0.8658754, 0.8658754, *[0] * 4], abs=1e-6)
        assert raw.tolist() == [1, 0, 0, 1, 0, 0, 0, 0]
        assert metadata["reward_mean"] == 0.25
        assert metadata["format_reward_mean"] == 1.0
        assert metadata["frac_reward_zero_std"] == 0.5
        assert all(isinstance(value, float) for value in metadata.values())

    def test_without_std_it_is_only_centred(self):
        advantages, *_ = compute_group_normalized_rewards(reward, list("ynnn"), ["y"] * 4, 4, 1e-6, False)
        assert advantages.tolist() == [0.75, -0.25, -0.25, -0.25]

    def test_the_dtype_of_rewards_is_float32(self):
        advantages, raw, _ = compute_group_normalized_rewards(reward, list("yn"), ["y"] * 2, 2, 1e-6, True)
        assert (advantages.dtype, raw.dtype) == (torch.float32, torch.float32)

    def test_lists_that_do_not_fit_are_refused(self):
        with pytest.raises(ValueError, match="2 responses and 1 ground truths"):
            compute_group_normalized_rewards(reward, ["a", "b"], ["a"], 2, 1e-6, True)
        with pytest.raises(ValueError, match="3 responses do not make whole groups of group_size=2"):
            compute_group_normalized_rewards(reward, ["a"] * 3, ["a"] * 3, 2, 1e-6, True)


class TestScores:
    def test_entropy_of_known_distributions(self):
        logits = torch.tensor([[0.0, 0, 0, 0], [log(2), 0, 0, -torch.inf]], requires_grad=True)
        entropy = compute_entropy(logits)
        assert entropy.tolist() == pytest.approx([log(4), 0.5 * log(2) + 0.5 * log(4)])
        entropy.sum().backward()
        assert torch.isfinite(logits.grad).all()

    def test_labels_are_scored_where_they_stand(self):
        ids, labels = torch.zeros(1, 2, dtype=torch.int64), torch.tensor([[0, 2]])
        scores = get_response_log_probs(FixedLogits(), ids, labels, return_token_entropy=True)
        assert scores["log_probs"].tolist()[0] == pytest.approx([log(0.5), log(0.25)])
        assert scores["token_entropy"].tolist()[0] == pytest.approx([1.0397208] * 2)
        assert set(get_response_log_probs(FixedLogits(), ids, labels, False)) == {"log_probs"}


class TestLosses:
    def test_the_naive_loss_spreads_one_weight_over_its_row(self):
        loss = compute_naive_policy_gradient_loss(torch.tensor([[2.0], [-1.0]]), torch.tensor([[-1.0, -3], [-2, -4]]))
        assert loss.tolist() == [[2, 6], [-2, -4]]

    def test_the_clip_acts_by_the_sign_of_the_advantage(self):
        new, old = log_probs_of_ratios([1.5, 0.5], [1.5, 0.5])
        loss, metadata = compute_grpo_clip_loss(torch.tensor([[1.0], [-1.0]]), new, old, 0.2)
        assert loss.flatten().tolist() == pytest.approx([-1.2, -0.5, 1.5, 0.8])
        assert metadata["clipped"].tolist() == [[True, False], [False, True]]

    @pytest.mark.parametrize(
        ("loss_type", "expected"),
        [
            ("no_baseline", 3 * 2.0),
            ("reinforce_with_baseline", 2.0),
            ("grpo_no_clip", -1.0),
            ("grpo_clip", -1.0),
        ],
    )
    def test_a_loss_is_chosen_by_name(self, loss_type, expected):
        old = torch.tensor([[-2.0]])
        loss, metadata = compute_policy_gradient_loss(
            old.clone(), loss_type, torch.tensor([[3.0]]), torch.tensor([[1.0]]), old, 0.2
        )
        assert loss.tolist() == [[expected]]
        assert isinstance(metadata, dict)

    @pytest.mark.parametrize(
        ("loss_type", "missing"),
        [
            ("no_baseline", "raw_rewards"),
            ("reinforce_with_baseline", "advantages"),
            ("grpo_no_clip", "old_log_probs"),
            ("grpo_clip", "cliprange"),
        ],
    )
    def test_what_a_loss_needs_is_named_when_it_is_missing(self, loss_type, missing):
        given = {"raw_rewards": torch.ones(1, 1), "advantages": torch.ones(1, 1), "old_log_probs": torch.zeros(1, 1)}
        given = {name: value for name, value in (given | {"cliprange": 0.2}).items() if name != missing}
        with pytest.raises(ValueError, match=f"{missing} is missing; loss_type={loss_type} needs it"):
            compute_policy_gradient_loss(torch.zeros(1, 1), loss_type, **given)

    def test_an_unknown_loss_names_the_known_ones(self):
        with pytest.raises(ValueError, match="loss_type=ppo is not one of no_baseline"):
            compute_policy_gradient_loss(
                torch.zeros(1, 1), "ppo", advantages=torch.ones(1, 1), old_log_probs=torch.zeros(1, 1)
            )


class TestMasked:
    values = torch.tensor([[1.0, 2.0, float("nan")], [4.0, 5.0, 6.0]])
    mask = torch.tensor([[1, 1, 0], [0, 0, 1]])

    @pytest.mark.parametrize("kind", ["int64", "float32", "bool"])
    def test_means_over_everything_rows_and_columns(self, kind):
        mask = self.mask.to(getattr(torch, kind))
        assert float(masked_mean(self.values, mask)) == 3.0  # (1 + 2 + 6) / 3
        assert masked_mean(self.values, mask, dim=1).tolist() == [1.5, 6]
        assert masked_mean(self.values, mask, dim=0).tolist() == [1, 2, 6]

    def test_the_mean_of_nothing_is_not_a_number(self):
        assert isnan(masked_mean(torch.ones(2), torch.zeros(2)))
        assert np.isnan(masked_mean(torch.ones(2, 2), torch.tensor([[1, 1], [0, 0]]), dim=1).numpy()).tolist() == [
            False,
            True,
        ]

    def test_sums_are_divided_by_the_constant(self):
        assert float(masked_normalize(self.values, self.mask, 4.0)) == 2.25
        assert masked_normalize(self.values, self.mask, normalize_constant=2.0, dim=1).tolist() == [1.5, 3]


class TestMicroBatches:
    mask = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0]])

    def test_the_sft_step_sums_rows_and_averages_them(self):
        log_probs = torch.full((2, 4), -1.0, requires_grad=True)
        loss, _ = sft_microbatch_train_step(log_probs, self.mask, 4, 2.0)
        # Rows 4/2 and 1/2, mean 5/4, a quarter of it.
        assert float(loss) == pytest.approx(5 / 16)
        assert log_probs.grad.tolist() == [[-1 / 16] * 4, [-1 / 16, 0, 0, 0]]

    def test_the_grpo_step_averages_within_rows_then_over_them(self):
        log_probs = torch.full((2, 4), -1.0, requires_grad=True)
        loss, _ = grpo_microbatch_train_step(
            log_probs, self.mask, 2, "reinforce_with_baseline", advantages=torch.tensor([[1.0], [3.0]])
        )
        assert float(loss) == pytest.approx((1 + 3) / 2 / 2)
        assert log_probs.grad.tolist() == [[-1 / 16] * 4, [-3 / 4, 0, 0, 0]]

    def test_the_clipped_share_is_over_the_response(self):
        new, old = log_probs_of_ratios([1.5, 1.0, 1.5, 1.0], [1.0, 1.5, 1.5, 1.5])
        _, metadata = grpo_microbatch_train_step(
            new, self.mask, 1, "grpo_clip", advantages=torch.ones(2, 1), old_log_probs=old, cliprange=0.2
        )
        assert float(metadata["clip_fraction"]) == pytest.approx(2 / 5)

    def test_gradients_of_several_steps_add_up(self):
        log_probs = torch.full((2, 4), -1.0, requires_grad=True)
        for _ in range(2):
            grpo_microbatch_train_step(log_probs, self.mask, 2, "no_baseline", raw_rewards=torch.ones(2, 1))
        assert log_probs.grad.tolist() == [[-1 / 8] * 4, [-1 / 2, 0, 0, 0]]


def test_every_promised_name_is_there():
    assert len(engine.grpo.__all__) == 11
    assert all(callable(getattr(engine.grpo, name)) for name in engine.grpo.__all__)
    with pytest.raises(AttributeError, match="no attribute 'ppo'"):
        engine.grpo.ppo  # noqa: B018
