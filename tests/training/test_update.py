import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.config import RunConfig, parse_config
from engine.errors import NonFiniteUpdateError
from engine.training.batch import Batch, build_batch, pad_rows
from engine.training.forward import score_tokens
from engine.training.groups import assign_advantages
from engine.training.optimizer import OptimizerStep
from engine.training.scoring import Progress, begin_update, completion_divergence
from engine.training.sft import teach
from engine.training.state import coefficients, start_state
from engine.training.summary import update_metrics
from engine.training.update import Coefficients, update_policy
from tests.training.frozen_optimizer import FrozenOptimizer

NOTHING_ELSE = Coefficients()
BASE = {"rollout.rollout_batch_size": 8, "rollout.group_size": 4}


def make_batch(groups, rewards, config: RunConfig) -> Batch:
    stats = assign_advantages(groups, rewards, config)
    batch = build_batch(
        groups,
        rewards,
        truncated=config.truncation.completions,
        learn_from=config.grpo.learn_from,
        device=torch.device("cpu"),
    )
    return batch.with_advantages(stats.advantages)


def updated(
    model, optimizer, batch: Batch, config: RunConfig, used: Coefficients = NOTHING_ELSE
) -> tuple[Progress, dict[str, float]]:
    """Take the optimizer steps of step 1 on `batch`; return their progress and metrics."""
    progress = begin_update(model, batch, config, step=1)
    whole = update_policy(
        model,
        optimizer,
        batch,
        config,
        step=1,
        progress=progress,
        coefficients=used,
        stop=lambda: False,
    )
    assert whole
    return progress, update_metrics(batch, progress, config, used)


def update(model, optimizer, batch: Batch, config: RunConfig, used: Coefficients = NOTHING_ELSE) -> dict[str, float]:
    """Take the optimizer steps of step 1 on `batch`, and return its metrics."""
    return updated(model, optimizer, batch, config, used)[1]


def gradients(model, groups, rewards, **settings) -> list[torch.Tensor]:
    config = parse_config(BASE | settings)
    optimizer = FrozenOptimizer(model)
    batch = make_batch(groups, rewards, config)
    if config.has_reference:
        batch = replace(batch, ref_log_probs=reference_log_probs(batch))
    if config.kl_in_reward:
        divergence = completion_divergence(batch, begin_update(model, batch, config, step=1).before, config)
        stats = assign_advantages(groups, rewards, config, divergence=divergence, beta=config.kl.beta)
        batch = batch.with_advantages(stats.advantages)
    update(model, optimizer, batch, config, coefficients(start_state(config), config))
    return optimizer.gradients


def reference_log_probs(batch: Batch) -> torch.Tensor:
    """Log-probs around -3.5, which is about 1 / 32 each; what stands at masked places would overflow an exp."""
    noise = torch.rand(batch.response_ids.shape, generator=torch.Generator().manual_seed(5))
    return torch.where(batch.response_mask, noise - 4.0, 500.0)


LOSS_SETTINGS = [
    {},
    {"grpo.dual_clip": 3.0},
    {"grpo.ratio_level": "sequence"},
    {"grpo.loss_type": "cispo"},
    {"grpo.loss_type": "reinforce_with_baseline", "grpo.baseline": "leave_one_out"},
    {"grpo.scale": "batch_std", "grpo.std": "population"},
    {"grpo.importance_correction": "token_truncate", "grpo.importance_cap": 1.1},
    {"kl.beta": 0.3},
    {"kl.beta": 0.3, "kl.placement": "reward", "kl.estimator": "k1"},
    {"entropy.bonus": 0.2},
    {"truncation.completions": "mask"},
]


@pytest.mark.parametrize("aggregation", ["mean", "constant", "token"])
@pytest.mark.parametrize("micro_batches", [2, 4, 8])
@pytest.mark.parametrize("losses", LOSS_SETTINGS, ids=lambda settings: ",".join(map(str, settings.values())))
def test_micro_batches_do_not_change_the_gradient(model, groups, rewards, aggregation, micro_batches, losses):
    settings = {"grpo.aggregation": aggregation} | losses
    (whole,) = gradients(model, groups, rewards, **settings)
    (split,) = gradients(model, groups, rewards, **settings, **{"grpo.gradient_accumulation_steps": micro_batches})
    assert float((whole - split).norm() / whole.norm()) < 1e-6


@pytest.mark.parametrize(
    "losses", [{"loss_type": "cispo"}, {"ratio_level": "sequence", "clip_eps": 0.001}, {"dual_clip": 1.01}], ids=str
)
def test_off_policy_the_settings_of_the_ratio_reach_the_loss(model, groups, rewards, losses):
    """Once the policy has moved, each of them gives another second gradient than the default."""

    class Moving(FrozenOptimizer):
        def apply(self, loss, *, step):
            gradient = torch.cat([p.grad.flatten() for p in self.model.parameters()]).clone()
            with torch.no_grad():
                for parameter in self.model.parameters():
                    parameter -= 0.5 * parameter.grad
            self.gradients.append(gradient)
            self.optimizer.zero_grad(set_to_none=True)
            return float(gradient.norm()), True

    start = {name: value.clone() for name, value in model.state_dict().items()}

    def second_gradient(**settings):
        model.load_state_dict(start)
        config = parse_config(BASE | {"epochs_per_rollout_batch": 2} | settings)
        optimizer = Moving(model)
        metrics = update(model, optimizer, make_batch(groups, rewards, config), config)
        return optimizer.gradients[1], metrics

    plain, _ = second_gradient()
    other, metrics = second_gradient(**losses)
    assert float((plain - other).norm() / plain.norm()) > 1e-3
    assert ("clip_ratio/dual_mean" in metrics) == ("dual_clip" in losses)
    assert metrics.get("clip_ratio/dual_mean", 1.0) > 0


def test_the_first_gradient_is_that_of_the_plain_policy_gradient(model, groups, rewards):
    """At ratio 1, clipped, unclipped and REINFORCE losses have one gradient."""
    (clipped,) = gradients(model, groups, rewards, **{"grpo.loss_type": "grpo_clip"})
    (unclipped,) = gradients(model, groups, rewards, **{"grpo.loss_type": "grpo_no_clip"})
    (reinforce,) = gradients(model, groups, rewards, **{"grpo.loss_type": "reinforce_with_baseline"})
    assert torch.allclose(clipped, unclipped, rtol=1e-5, atol=1e-8)
    assert torch.allclose(clipped, reinforce, rtol=1e-5, atol=1e-8)
    assert float(clipped.norm()) > 0


def test_the_gradient_equals_autograd_on_the_written_out_loss(model, groups, rewards):
    config = parse_config(BASE)
    batch = make_batch(groups, rewards, config)
    scores = score_tokens(model, batch, temperature=1.0)
    per_sequence = (scores.log_probs * batch.response_mask).sum(1) / batch.response_lengths
    model.zero_grad()
    (-(batch.advantages * per_sequence).mean()).backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).clone()
    model.zero_grad()
    (actual,) = gradients(model, groups, rewards)
    assert float((actual - expected).norm() / expected.norm()) < 1e-5


EXPERT = {"grpo.learn_from": "correct", "grpo.loss_type": "no_baseline"}


@pytest.mark.parametrize(("aggregation", "loss"), [("token", "token"), ("mean", "sequence")])
@pytest.mark.parametrize("micro_batches", [1, 4])
def test_the_gradient_of_expert_iteration_is_that_of_sft_on_the_correct_completions(
    model, groups, rewards, aggregation, loss, micro_batches
):
    correct = [
        (group.prompt_token_ids, completion.token_ids)
        for group, members in zip(groups, rewards, strict=True)
        for completion, reward in zip(group.completions, members, strict=True)
        if reward.verdict == "correct"
    ]
    batch = pad_rows(correct, device=torch.device("cpu"))
    batch = replace(batch, advantages=torch.ones(3))
    optimizer = FrozenOptimizer(model)
    config = parse_config(BASE | {"sft.steps": 1, "sft.loss": loss})
    assert teach(model, optimizer, batch, config, step=1, stop=lambda: False)
    settings = EXPERT | {"grpo.aggregation": aggregation, "grpo.gradient_accumulation_steps": micro_batches}
    (actual,) = gradients(model, groups, rewards, **settings)
    assert float((actual - optimizer.gradients[0]).norm() / actual.norm()) < 1e-6


def test_in_expert_iteration_an_advantage_is_1_whatever_the_reward_is_worth(model, groups, rewards):
    penalised = [[replace(reward, value=reward.value - 0.25) for reward in members] for members in rewards]
    batch = make_batch(groups, penalised, parse_config(BASE | EXPERT))
    assert batch.advantages.tolist() == [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0]
    assert batch.loss_mask.any(1).tolist() == [advantage == 1.0 for advantage in batch.advantages]
    assert batch.response_mask.any(1).all()


def test_in_expert_iteration_a_kl_term_acts_on_the_correct_completions_alone(model, groups, rewards):
    wrong = [[replace(reward, value=0.0, verdict="wrong") for reward in members] for members in rewards]
    (nothing,) = gradients(model, groups, wrong, **EXPERT, **{"kl.beta": 0.3})
    (pulled,) = gradients(model, groups, rewards, **EXPERT, **{"kl.beta": 0.3})
    (plain,) = gradients(model, groups, rewards, **EXPERT)
    assert float(nothing.abs().max()) == 0.0
    assert float((pulled - plain).norm()) > 1e-3


def test_a_step_of_expert_iteration_without_a_correct_completion_has_no_gradient(model, groups, rewards):
    unreadable = [[replace(reward, value=0.5, verdict="unreadable") for reward in members] for members in rewards]
    config = parse_config(BASE | EXPERT)
    optimizer = FrozenOptimizer(model)
    metrics = update(model, optimizer, make_batch(groups, unreadable, config), config)
    assert float(optimizer.gradients[0].abs().max()) == 0.0
    assert metrics["loss"] == 0.0


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_kl_term_and_entropy_bonus_have_the_gradient_of_the_written_out_objective(model, groups, rewards, estimator):
    settings = {"grpo.aggregation": "token", "kl.beta": 0.3, "kl.estimator": estimator, "entropy.bonus": 0.2}
    config = parse_config(BASE | settings)
    batch = make_batch(groups, rewards, config)
    scores = score_tokens(model, batch, temperature=1.0, entropy_graph=True)
    mask = batch.response_mask
    reference = torch.where(mask, reference_log_probs(batch), 0.0)
    d = torch.where(mask, reference - scores.log_probs, 0.0)
    kl = {"k1": -d, "k2": d * d / 2, "k3": d.exp() - d - 1}[estimator]
    per_token = -batch.advantages[:, None] * scores.log_probs + 0.3 * kl - 0.2 * scores.entropy
    model.zero_grad()
    (per_token[mask].sum() / mask.sum()).backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).clone()
    model.zero_grad()
    (actual,) = gradients(model, groups, rewards, **settings)
    assert float((actual - expected).norm() / expected.norm()) < 1e-5


def test_under_a_kl_term_flat_groups_are_pulled_as_well(model, groups, rewards):
    flat = [[replace(reward, value=1.0) for reward in members] for members in rewards]
    (pulled,) = gradients(model, groups, flat, **{"kl.beta": 0.3})
    (measured,) = gradients(model, groups, flat, **{"kl.measure": True})
    assert float(pulled.norm()) > 1e-3
    assert float(measured.abs().max()) == 0.0


def test_in_the_reward_a_completion_further_from_the_reference_is_worth_less(model, groups, rewards):
    config = parse_config(BASE | {"kl.beta": 0.1, "kl.placement": "reward", "grpo.scale": "none"})
    divergence = np.array([4.0, 0.0, 2.0, 2.0, 1.0, 1.0, 1.0, 1.0], np.float32)
    stats = assign_advantages(groups, rewards, config, divergence=divergence, beta=0.1)
    # Rewards 1 0 0 1 with mean 1/2; divergences 4 0 2 2 with mean 2, at 0.1 per nat.
    assert stats.advantages[0].tolist() == pytest.approx([0.5 - 0.2, -0.5 + 0.2, -0.5, 0.5])
    assert stats.advantages[1].tolist() == pytest.approx([-0.25, -0.25, 0.75, -0.25])


@pytest.mark.parametrize(("completions", "mean"), [("mask", 0.5), ("exclude", 2 / 3)])
def test_a_cut_completion_leaves_loss_and_denominators_and_if_asked_the_statistics(
    model, groups, rewards, completions, mean
):
    """The first group is right, wrong, wrong, right; its 9-token wrong answer was cut off."""
    members = list(groups[0].completions)
    members[1] = replace(members[1], finish_reason="length")
    cut = [replace(groups[0], completions=tuple(members)), groups[1]]
    settings = {"truncation.completions": completions, "grpo.aggregation": "token", "grpo.scale": "none"}
    config = parse_config(BASE | settings)
    batch = make_batch(cut, rewards, config)
    assert batch.advantages[0] == pytest.approx(1 - mean)
    assert batch.loss_mask[1].sum() == 0
    assert batch.response_mask[1].sum() == 9
    metrics = update(model, FrozenOptimizer(model), batch, config)
    tokens = 3 + 1 + 5 + 2 + 7 + 4 + 6
    in_loss = torch.tensor([1, 0, 1, 1, 1, 1, 1, 1])
    weighted = in_loss * batch.advantages * batch.response_lengths
    assert metrics["loss"] == pytest.approx(float(-weighted.sum() / tokens), abs=1e-5)


def test_a_stop_between_two_optimizer_steps_is_resumed_to_the_same_weights(model, groups, rewards):
    config = parse_config(BASE | {"grpo.epochs_per_rollout_batch": 2, "grpo.train_batch_size": 4})
    start = {name: value.clone() for name, value in model.state_dict().items()}

    def trained(stop_at: int | None):
        """Weights after the step, stopped before its micro-batch `stop_at` and then gone on with."""
        model.load_state_dict(start)
        optimizer = OptimizerStep(model, torch.optim.AdamW(model.parameters(), lr=0.01), 1.0, 5)
        batch = make_batch(groups, rewards, config)
        progress = begin_update(model, batch, config, step=1)
        asked = itertools.count(1)

        def go(stop):
            return update_policy(
                model,
                optimizer,
                batch,
                config,
                step=1,
                progress=progress,
                coefficients=NOTHING_ELSE,
                stop=stop,
            )

        if stop_at is not None:
            assert not go(lambda: next(asked) == stop_at)
            assert len(progress.tallies) == stop_at - 1
        assert go(lambda: False)
        return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])

    whole = trained(None)
    assert all(torch.equal(trained(stop_at), whole) for stop_at in (1, 2, 4))


def test_the_entropy_of_a_share_of_the_rows_is_that_of_all_where_it_is_there(model, groups, rewards):
    def before(share):
        config = parse_config(BASE | {"logging.entropy_share": share})
        batch = make_batch(groups, rewards, config)
        progress, metrics = updated(model, FrozenOptimizer(model), batch, config)
        entropy = [
            row[: int(length)] for row, length in zip(progress.before.entropy, batch.response_lengths, strict=True)
        ]
        return entropy, metrics

    everything, metrics = before(1.0)
    half, sampled = before(0.5)
    there = [row for row in range(8) if not half[row].isnan().any()]
    assert len(there) == 4
    assert all(torch.allclose(half[row], everything[row], atol=1e-6) for row in there)
    assert sampled["entropy"] == pytest.approx(float(torch.cat([everything[row] for row in there]).mean()), abs=1e-5)
    assert metrics["entropy"] != sampled["entropy"]
    _, nothing = before(0.0)
    assert "entropy" not in nothing


def test_a_completion_without_a_reward_leaves_loss_and_denominators(model, groups, rewards):
    """Not graded = not there: the gradient is that of the three other completions under "token"."""
    missing = replace(rewards[0][1], value=None, verdict="not_graded")
    holed = [[rewards[0][0], missing, *rewards[0][2:]], rewards[1]]
    config = parse_config(BASE | {"grpo.aggregation": "token"})
    batch = make_batch(groups, holed, config)
    assert batch.advantages[1] == 0
    assert batch.loss_mask[1].sum() == 0
    assert batch.response_mask[1].sum() == 9
    optimizer = FrozenOptimizer(model)
    metrics = update(model, optimizer, batch, config)
    tokens = 3 + 1 + 5 + 2 + 7 + 4 + 6
    weighted = batch.advantages * batch.response_lengths
    assert metrics["loss"] == pytest.approx(float(-weighted.sum() / tokens), abs=1e-5)


def test_a_batch_of_flat_groups_has_no_gradient_and_no_ratio(model, groups, rewards):
    flat = [[replace(reward, value=1.0) for reward in members] for members in rewards]
    config = parse_config(BASE)
    optimizer = FrozenOptimizer(model)
    metrics = update(model, optimizer, make_batch(groups, flat, config), config)
    assert float(optimizer.gradients[0].abs().max()) == 0.0
    assert metrics["loss"] == 0.0
    assert "ratio/mean" not in metrics
    assert metrics["entropy"] > 1.0


def test_off_policy_updates_take_every_row_once_per_epoch(model, groups, rewards):
    steps = gradients(model, groups, rewards, **{"grpo.train_batch_size": 4, "grpo.epochs_per_rollout_batch": 3})
    assert len(steps) == 6


def test_the_second_optimizer_step_is_clipped_once_the_policy_has_moved(model, groups, rewards):
    settings = BASE | {
        "grpo.epochs_per_rollout_batch": 4,
        "grpo.clip_eps": 0.01,
        "optimizer.learning_rate": 0.05,
    }
    config = parse_config(settings)
    optimizer = OptimizerStep(model, torch.optim.AdamW(model.parameters(), lr=0.05), 1.0, 5)
    metrics = update(model, optimizer, make_batch(groups, rewards, config), config)
    assert metrics["updates/optimizer_steps"] == 4
    assert metrics["clip_ratio/region_mean"] > 0.05
    assert metrics["ratio/mean"] != pytest.approx(1.0, abs=1e-4)


def spread(metrics):
    return tuple(metrics[f"sampling/importance_weight/{key}"] for key in ("mean", "min", "max"))


def test_a_sampler_that_overrates_its_tokens_is_corrected_for(model, groups, rewards):
    """Sampler probabilities at half the policy's: every ratio is 2, so the gradient doubles; a cap of 1.5 holds it."""
    batch = make_batch(groups, rewards, parse_config(BASE))
    scores = score_tokens(model, batch, temperature=1.0).log_probs.detach()
    batch = replace(batch, sampler_log_probs=scores - torch.tensor(2.0).log())

    def gradient(**settings):
        config = parse_config(BASE | settings)
        optimizer = FrozenOptimizer(model)
        metrics = update(model, optimizer, batch, config)
        return optimizer.gradients[0], metrics

    plain, metrics = gradient()
    assert metrics["sampling/importance_sampling_ratio/mean"] == pytest.approx(2.0, abs=1e-4)
    assert metrics["sampling/importance_beyond_cap"] == 0.0
    assert "sampling/importance_weight/mean" not in metrics
    doubled, _ = gradient(importance_correction="token_truncate")
    assert torch.allclose(doubled, 2 * plain, rtol=1e-3, atol=1e-6)
    capped, metrics = gradient(importance_correction="token_truncate", importance_cap=1.5)
    assert torch.allclose(capped, 1.5 * plain, rtol=1e-3, atol=1e-6)
    assert metrics["sampling/importance_beyond_cap"] == 1.0
    assert metrics["sampling/importance_sampling_ratio/max"] == pytest.approx(2.0, abs=1e-4)
    assert spread(metrics) == pytest.approx((1.5, 1.5, 1.5))
    dropped, metrics = gradient(importance_correction="token_mask", importance_cap=1.5)
    assert float(dropped.abs().max()) == 0.0
    assert spread(metrics) == (0.0, 0.0, 0.0)
    # The one-token row keeps its ratio of 2 under a cap of 3; the seven longer rows are at 4 and more. Per token: 2.
    _, metrics = gradient(importance_correction="sequence_mask")
    assert metrics["sampling/importance_beyond_cap"] == pytest.approx(7 / 8)
    assert metrics["sampling/importance_sampling_ratio/max"] == pytest.approx(2.0, abs=1e-4)
    assert spread(metrics) == pytest.approx((2 / 8, 0.0, 2.0), abs=1e-4)
    _, metrics = gradient(importance_correction="sequence_truncate")
    assert spread(metrics) == pytest.approx((23 / 8, 2.0, 3.0), abs=1e-4)


def test_scores_do_not_depend_on_the_rows_beside_them(model, groups, rewards):
    batch = make_batch(groups, rewards, parse_config(BASE))
    together = score_tokens(model, batch, temperature=0.7)
    for row in range(len(batch)):
        alone = score_tokens(model, batch.rows(torch.tensor([row])), temperature=0.7)
        length = int(batch.response_lengths[row])
        assert torch.allclose(together.log_probs[row, :length], alone.log_probs[0], atol=1e-5)
        assert torch.allclose(together.entropy[row, :length], alone.entropy[0], atol=1e-5)


def test_scores_are_those_of_the_whole_sequence_put_through_the_model(model, groups, rewards):
    batch = make_batch(groups, rewards, parse_config(BASE))
    scores = score_tokens(model, batch, temperature=1.0)
    group, completion = groups[1], groups[1].completions[1]
    ids = torch.tensor([[*group.prompt_token_ids, *completion.token_ids]])
    log_probs = torch.log_softmax(model(ids).logits, -1)[0].detach()
    first = len(group.prompt_token_ids)
    expected = [float(log_probs[first - 1 + t, token]) for t, token in enumerate(completion.token_ids)]
    assert scores.log_probs[5, :7].tolist() == pytest.approx(expected, abs=1e-5)


def test_a_non_finite_loss_leaves_the_weights_and_fails_the_run_when_it_repeats(model):
    optimizer = OptimizerStep(model, torch.optim.SGD(model.parameters(), lr=1.0), 1.0, 2)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, float("nan"))
    _, changed = optimizer.apply(1.0, step=3)
    assert not changed
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    with pytest.raises(NonFiniteUpdateError, match="step 4: 2 optimizer steps in a row"):
        optimizer.apply(float("inf"), step=4)


def test_a_finite_update_ends_a_row_of_skipped_ones(model):
    optimizer = OptimizerStep(model, torch.optim.SGD(model.parameters(), lr=0.1), 1.0, 2)
    for loss in (float("nan"), 0.5, float("nan"), 0.5):
        optimizer.apply(loss, step=1)
    assert optimizer.skipped_in_a_row == 0


def test_a_step_without_gradients_still_moves_by_momentum(model):
    """AdamW with a gradient of 0 is not AdamW without a gradient."""
    optimizer = OptimizerStep(model, torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0.0), 1.0, 2)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.apply(0.0, step=1)
    before = next(model.parameters()).detach().clone()
    optimizer.apply(0.0, step=2)
    assert not torch.equal(before, next(model.parameters()))
