"""The training batch: B completions as padded tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from engine.grpo.masking import response_mask
from engine.types import FloatArray, Group, Reward


@dataclass(frozen=True, slots=True)
class Batch:
    """B rows of prompt and completion, L tokens wide, the completions T wide.

    Rows are prompt and completion without a gap, padded on the right, so that a causal model needs no
    attention mask and every token has its natural position.
    """

    input_ids: Tensor  # (B, L) int64
    response_ids: Tensor  # (B, T) int64
    response_mask: Tensor  # (B, T) bool, every sampled token
    loss_mask: Tensor  # (B, T) bool, the tokens of completions that have a reward
    sampler_log_probs: Tensor  # (B, T) float32
    prompt_lengths: Tensor  # (B,) int64
    response_lengths: Tensor  # (B,) int64
    advantages: Tensor  # (B,) float32

    def __len__(self) -> int:
        return len(self.advantages)

    def rows(self, index: Tensor) -> "Batch":
        """Return the rows `index` (int64), trimmed to their own longest sequence."""
        chosen = replace(self, **{field.name: getattr(self, field.name)[index] for field in fields(self)})
        width = int((chosen.prompt_lengths + chosen.response_lengths).max())
        longest = int(chosen.response_lengths.max())
        trimmed = ("response_ids", "response_mask", "loss_mask", "sampler_log_probs")
        return replace(
            chosen,
            input_ids=chosen.input_ids[:, :width],
            **{name: getattr(chosen, name)[:, :longest] for name in trimmed},
        )


def build_batch(
    groups: Sequence[Group],
    rewards: Sequence[Sequence[Reward]],
    advantages_P_G: FloatArray,
    *,
    device: torch.device,
) -> Batch:
    """Return the batch of all completions of `groups`, group after group."""
    rows = [(group.prompt_token_ids, completion) for group in groups for completion in group.completions]
    graded = np.array([reward.value is not None for members in rewards for reward in members])
    prompt_lengths = np.array([len(prompt) for prompt, _ in rows])
    response_lengths = np.array([len(completion.token_ids) for _, completion in rows])
    input_ids = np.zeros((len(rows), int((prompt_lengths + response_lengths).max())), np.int64)
    response_ids = np.zeros((len(rows), int(response_lengths.max())), np.int64)
    sampler_log_probs = np.zeros(response_ids.shape, np.float32)
    for row, (prompt, completion) in enumerate(rows):
        length = len(completion.token_ids)
        input_ids[row, : len(prompt)] = prompt
        input_ids[row, len(prompt) : len(prompt) + length] = completion.token_ids
        response_ids[row, :length] = completion.token_ids
        sampler_log_probs[row, :length] = completion.sampler_log_probs
    width = response_ids.shape[1]
    batch = Batch(
        input_ids=torch.from_numpy(input_ids),
        response_ids=torch.from_numpy(response_ids),
        response_mask=torch.from_numpy(response_mask(response_lengths, width)),
        loss_mask=torch.from_numpy(response_mask(response_lengths, width, keep=graded)),
        sampler_log_probs=torch.from_numpy(sampler_log_probs),
        prompt_lengths=torch.from_numpy(prompt_lengths),
        response_lengths=torch.from_numpy(response_lengths),
        advantages=torch.from_numpy(advantages_P_G.reshape(-1).astype(np.float32)),
    )
    return replace(batch, **{field.name: getattr(batch, field.name).to(device) for field in fields(batch)})
