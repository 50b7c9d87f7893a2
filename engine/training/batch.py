"""The training batch: B completions as padded tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engine.config.sections import LearnFrom, TruncatedCompletions
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
    loss_mask: Tensor  # (B, T) bool, the tokens of completions that take part in the loss
    sampler_log_probs: Tensor  # (B, T) float32
    prompt_lengths: Tensor  # (B,) int64
    response_lengths: Tensor  # (B,) int64
    advantages: Tensor  # (B,) float32
    ref_log_probs: Tensor | None = None  # (B, T) float32, of the reference policy
    prompts: Tensor | None = None  # (B,) int64, equal where rows share a prompt; None if none do

    def __len__(self) -> int:
        return len(self.advantages)

    def rows(self, index: Tensor) -> "Batch":
        """Return the rows `index` (int64), trimmed to their own longest sequence."""
        tensors = self._tensors()
        chosen = replace(self, **{name: tensor[index] for name, tensor in tensors.items()})
        width = int((chosen.prompt_lengths + chosen.response_lengths).max())
        longest = int(chosen.response_lengths.max())
        trimmed = tensors.keys() & {"response_ids", "response_mask", "loss_mask", "sampler_log_probs", "ref_log_probs"}
        return replace(
            chosen,
            input_ids=chosen.input_ids[:, :width],
            **{name: getattr(chosen, name)[:, :longest] for name in trimmed},
        )

    def to(self, device: torch.device) -> "Batch":
        """Return the batch on `device`."""
        return replace(self, **{name: tensor.to(device) for name, tensor in self._tensors().items()})

    def with_advantages(self, advantages_P_G: FloatArray) -> "Batch":
        """Return the batch with the advantages (P, G) of its groups.

        Raises ValueError unless there is one for each row.
        """
        if advantages_P_G.size != len(self):
            raise ValueError(f"advantages: {advantages_P_G.size} for {len(self)} rows; give one for each completion")
        return replace(self, advantages=torch.from_numpy(advantages_P_G.reshape(-1).astype(np.float32)).to(self.device))

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.input_ids.device

    def _tensors(self) -> dict[str, Tensor]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: tensor for name, tensor in named.items() if tensor is not None}


def build_batch(
    groups: Sequence[Group],
    rewards: Sequence[Sequence[Reward]],
    *,
    truncated: TruncatedCompletions = "keep",
    learn_from: LearnFrom = "all",
    device: torch.device,
) -> Batch:
    """Return the batch of all completions of `groups`, group after group, every advantage 0 so far.

    Completions without a reward are left out of the loss, and unless `truncated` is "keep" those that the length
    limit cut off, and those that are not correct if `learn_from` is "correct": their tokens count in no denominator.

    Raises ValueError unless there is one reward for each completion.
    """
    counts = [[len(group.completions) for group in groups], [len(members) for members in rewards]]
    if counts[0] != counts[1]:
        raise ValueError(f"rewards: {counts[1]} per group for {counts[0]} completions; give one for each completion")
    rows = [(group.prompt_token_ids, completion) for group in groups for completion in group.completions]
    teaching = np.array([reward.value is not None for members in rewards for reward in members])
    if learn_from == "correct":
        teaching &= np.array([reward.verdict == "correct" for members in rewards for reward in members])
    if truncated != "keep":
        teaching &= np.array([completion.finish_reason != "length" for _, completion in rows])
    prompts = np.repeat(np.arange(len(groups)), counts[0])
    token_ids = [(prompt, completion.token_ids) for prompt, completion in rows]
    batch = pad_rows(token_ids, prompts=prompts, keep=teaching, device=device)
    sampler_log_probs = np.zeros(batch.response_ids.shape, np.float32)
    for row, (_, completion) in enumerate(rows):
        sampler_log_probs[row, : len(completion.token_ids)] = completion.sampler_log_probs
    return replace(batch, sampler_log_probs=torch.from_numpy(sampler_log_probs).to(device))


def pad_rows(
    rows: Sequence[tuple[Sequence[int], Sequence[int]]],
    *,
    prompts: NDArray[np.int64] | None = None,
    keep: NDArray[np.bool_] | None = None,
    device: torch.device,
) -> Batch:
    """Return the batch of `rows`, token ids of prompt and response, with no sampler log-probs and no advantages yet.

    Rows with equal numbers in `prompts` (B,) share their prompt. Rows where `keep` (B,) is False are left out of the
    loss.
    """
    prompt_lengths = np.array([len(prompt) for prompt, _ in rows])
    response_lengths = np.array([len(response) for _, response in rows])
    input_ids = np.zeros((len(rows), int((prompt_lengths + response_lengths).max())), np.int64)
    width = int(response_lengths.max())
    response_ids = np.zeros((len(rows), width), np.int64)
    for row, (prompt, response) in enumerate(rows):
        input_ids[row, : len(prompt)] = prompt
        input_ids[row, len(prompt) : len(prompt) + len(response)] = response
        response_ids[row, : len(response)] = response
    return Batch(
        input_ids=torch.from_numpy(input_ids),
        response_ids=torch.from_numpy(response_ids),
        response_mask=torch.from_numpy(response_mask(response_lengths, width)),
        loss_mask=torch.from_numpy(response_mask(response_lengths, width, keep=keep)),
        sampler_log_probs=torch.zeros(len(rows), width),
        prompt_lengths=torch.from_numpy(prompt_lengths),
        response_lengths=torch.from_numpy(response_lengths),
        advantages=torch.zeros(len(rows)),
        prompts=None if prompts is None else torch.from_numpy(prompts),
    ).to(device)
