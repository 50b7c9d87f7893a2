"""The functions of Stanford CS336's assignment 5, under their names and with their arguments, over our maths.

Course code and notebooks that call these run on the losses, advantages and log-probs that train here. They take
torch tensors; masks may be bool or 0/1. `from engine.grpo import compute_grpo_clip_loss` loads torch at that
moment, not before. Source: the assignment's handout (2025), sections 4 and 7.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from engine.grpo.advantages import Scale, group_advantages
from engine.grpo.log_probs import token_log_probs
from engine.grpo.loss import LOSSES, TokenLoss

Metadata = dict[str, Any]


def tokenize_prompt_and_output(
    prompt_strs: Sequence[str], output_strs: Sequence[str], tokenizer: Any
) -> dict[str, Tensor]:
    """Return `input_ids`, `labels` and `response_mask`, each (B, L - 1), L the longest prompt and output together.

    Prompt and output are tokenised apart and joined, rows are padded on the right; `input_ids` is without the last
    place, `labels` without the first. `response_mask` (bool) is true where a label is a token of the output.
    Padding is the tokenizer's pad token, its end token where it has none.

    Raises ValueError when the two lists differ in length or the tokenizer has neither token.
    """
    if len(prompt_strs) != len(output_strs):
        raise ValueError(f"{len(prompt_strs)} prompts and {len(output_strs)} outputs; give one output per prompt")
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    if pad is None:
        raise ValueError("the tokenizer has neither a pad token nor an end token; set tokenizer.pad_token")
    prompts = [tokenizer.encode(text, add_special_tokens=False) for text in prompt_strs]
    outputs = [tokenizer.encode(text, add_special_tokens=False) for text in output_strs]
    width = max((len(prompt) + len(output) for prompt, output in zip(prompts, outputs, strict=True)), default=1)
    token_ids = torch.full((len(prompts), width), pad, dtype=torch.int64)
    of_output = torch.zeros((len(prompts), width), dtype=torch.bool)
    for row, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
        end = len(prompt) + len(output)
        token_ids[row, :end] = torch.tensor([*prompt, *output], dtype=torch.int64)
        of_output[row, len(prompt) : end] = True
    return {"input_ids": token_ids[:, :-1], "labels": token_ids[:, 1:], "response_mask": of_output[:, 1:]}


def compute_group_normalized_rewards(
    reward_fn: Callable[[str, str], Mapping[str, float]],
    rollout_responses: Sequence[str],
    repeated_ground_truths: Sequence[str],
    group_size: int,
    advantage_eps: float,
    normalize_by_std: bool,
) -> tuple[Tensor, Tensor, dict[str, float]]:
    """Return advantages (B,), raw rewards (B,), both float32, and statistics of the rewards.

    A = (r - mean) / (sample std + eps) within each `group_size` responses in a row, or r - mean; exactly 0 where
    all rewards of a group are equal. `reward_fn(response, ground_truth)` gives "reward" and its parts.

    Raises ValueError when the lists differ in length or do not make whole groups.
    """
    rows = len(rollout_responses)
    if rows != len(repeated_ground_truths):
        raise ValueError(f"{rows} responses and {len(repeated_ground_truths)} ground truths; repeat one per response")
    if group_size < 1 or rows % group_size:
        raise ValueError(f"{rows} responses do not make whole groups of group_size={group_size}")
    judged = [reward_fn(*pair) for pair in zip(rollout_responses, repeated_ground_truths, strict=True)]
    rewards = torch.tensor([each["reward"] for each in judged], dtype=torch.float32)
    scale: Scale = "group_std" if normalize_by_std else "none"
    stats = group_advantages(rewards.reshape(-1, group_size), scale=scale, eps=advantage_eps)
    metadata = {f"{part}_mean": sum(each[part] for each in judged) / rows for part in (judged[0] if judged else ())}
    if rows:
        metadata |= {
            "reward_std": float(stats.std.mean()),
            "reward_max": float(rewards.max()),
            "reward_min": float(rewards.min()),
            "frac_reward_zero_std": float(stats.flat.float().mean()),
        }
    return stats.advantages.reshape(-1), rewards, metadata


def compute_entropy(logits: Tensor) -> Tensor:
    """Return the entropies (...), in nats, of softmax over the last axis of `logits` (..., V), in the graph.

    H = logsumexp(z) - Σ p·z. A logit of -inf has probability 0 and adds nothing.
    """
    finite = logits.clamp(min=torch.finfo(logits.dtype).min)  # 0 · -inf would be NaN
    return torch.logsumexp(logits, dim=-1) - (torch.softmax(logits, dim=-1) * finite).sum(dim=-1)


def get_response_log_probs(
    model: Any, input_ids: Tensor, labels: Tensor, return_token_entropy: bool = False
) -> dict[str, Tensor]:
    """Return `log_probs` (B, L), log p(label | what stands before it), and on request `token_entropy` (B, L).

    Nothing is masked: prompt and padding are scored like the rest.
    """
    logits = model(input_ids).logits
    scores = {"log_probs": token_log_probs(logits, labels)}
    if return_token_entropy:
        scores["token_entropy"] = compute_entropy(logits.float())
    return scores


def compute_naive_policy_gradient_loss(raw_rewards_or_advantages: Tensor, policy_log_probs: Tensor) -> Tensor:
    """Return -A · log p (B, T) for rewards or advantages (B, 1)."""
    loss: Tensor = _token_loss("reinforce_with_baseline", policy_log_probs, raw_rewards_or_advantages).loss
    return loss


def compute_grpo_clip_loss(
    advantages: Tensor, policy_log_probs: Tensor, old_log_probs: Tensor, cliprange: float
) -> tuple[Tensor, Metadata]:
    """Return -min(ρA, clip(ρ, 1 - cliprange, 1 + cliprange)A) (B, T) for `advantages` (B, 1), ρ = p / p_old.

    The metadata hold `clipped` (bool, where the clip decided) and `ratio`, both (B, T) and outside the graph.
    """
    result = _token_loss("grpo_clip", policy_log_probs, advantages, old_log_probs, cliprange)
    return result.loss, {"clipped": result.clipped_low | result.clipped_high, "ratio": result.ratio}


def compute_policy_gradient_loss(
    policy_log_probs: Tensor,
    loss_type: str,
    raw_rewards: Tensor | None = None,
    advantages: Tensor | None = None,
    old_log_probs: Tensor | None = None,
    cliprange: float | None = None,
) -> tuple[Tensor, Metadata]:
    """Return the loss (B, T) of `loss_type` and its metadata.

    "no_baseline" takes `raw_rewards`; "reinforce_with_baseline" takes `advantages`; "grpo_no_clip" takes
    `old_log_probs` besides; "grpo_clip" takes `cliprange` besides. Raises ValueError when one of them is missing.
    """
    if loss_type == "no_baseline":
        return compute_naive_policy_gradient_loss(_given(raw_rewards, "raw_rewards", loss_type), policy_log_probs), {}
    weights = _given(advantages, "advantages", loss_type)
    if loss_type == "reinforce_with_baseline":
        return compute_naive_policy_gradient_loss(weights, policy_log_probs), {}
    old = _given(old_log_probs, "old_log_probs", loss_type)
    if loss_type == "grpo_clip":
        return compute_grpo_clip_loss(weights, policy_log_probs, old, _given(cliprange, "cliprange", loss_type))
    if loss_type == "grpo_no_clip":
        result = _token_loss(loss_type, policy_log_probs, weights, old)
        return result.loss, {"ratio": result.ratio}
    raise ValueError(
        f"loss_type={loss_type} is not one of no_baseline, reinforce_with_baseline, grpo_no_clip, grpo_clip"
    )


def masked_mean(tensor: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Return the mean of `tensor` where `mask` is true, over `dim` or over everything: sum / count.

    Of nothing it is NaN (0/0), as the course has it; `engine.grpo.masking.masked_mean`, which trains, gives 0.
    """
    kept = mask.bool()
    selected = torch.where(kept, tensor, torch.zeros_like(tensor))
    return selected.sum() / kept.sum() if dim is None else selected.sum(dim) / kept.sum(dim)


def masked_normalize(tensor: Tensor, mask: Tensor, normalize_constant: float = 1.0, dim: int | None = None) -> Tensor:
    """Return the sum of `tensor` where `mask` is true, over `dim` or over everything, divided by the constant."""
    selected = torch.where(mask.bool(), tensor, torch.zeros_like(tensor))
    return (selected.sum() if dim is None else selected.sum(dim)) / normalize_constant


def sft_microbatch_train_step(
    policy_log_probs: Tensor, response_mask: Tensor, gradient_accumulation_steps: int, normalize_constant: float = 1.0
) -> tuple[Tensor, Metadata]:
    """Add the gradient of one micro-batch; return the loss that was differentiated, detached, and metadata.

    loss = -Σ log p / constant of each row, the mean over the rows, divided by the accumulation steps.
    """
    per_row = masked_normalize(policy_log_probs, response_mask, normalize_constant, dim=-1)
    loss = -per_row.mean() / gradient_accumulation_steps
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), {"response_tokens": response_mask.sum()}


def grpo_microbatch_train_step(
    policy_log_probs: Tensor,
    response_mask: Tensor,
    gradient_accumulation_steps: int,
    loss_type: str,
    raw_rewards: Tensor | None = None,
    advantages: Tensor | None = None,
    old_log_probs: Tensor | None = None,
    cliprange: float | None = None,
) -> tuple[Tensor, Metadata]:
    """Add the gradient of one micro-batch; return the loss that was differentiated, detached, and metadata.

    The token losses of `compute_policy_gradient_loss` (which see), the mean of each row over its response, the mean
    over the rows, divided by the accumulation steps. `clip_fraction` is over the response tokens.
    """
    token_loss, metadata = compute_policy_gradient_loss(
        policy_log_probs, loss_type, raw_rewards, advantages, old_log_probs, cliprange
    )
    loss = masked_mean(token_loss, response_mask, dim=-1).mean() / gradient_accumulation_steps
    loss.backward()  # type: ignore[no-untyped-call]
    if "clipped" in metadata:
        metadata["clip_fraction"] = masked_mean(metadata["clipped"].float(), response_mask)
    return loss.detach(), metadata


def _token_loss(
    name: str,
    log_probs: Tensor,
    advantages: Tensor,
    old_log_probs: Tensor | None = None,
    cliprange: float = 0.2,
) -> TokenLoss:
    everything = torch.ones_like(log_probs, dtype=torch.bool)
    return LOSSES[name](
        log_probs,
        advantages,
        everything,
        old_log_probs=old_log_probs,
        clip_eps_low=cliprange,
        clip_eps_high=cliprange,
    )


def _given(value: Any, name: str, loss_type: str) -> Any:
    if value is None:
        raise ValueError(f"{name} is missing; loss_type={loss_type} needs it")
    return value
