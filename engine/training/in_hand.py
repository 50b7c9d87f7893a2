"""The step in hand: what a stop inside a step must keep, so that a resume goes on inside it.

The weights it was sampled with are gone by then, so prompts, completions and rewards are kept as they are, with the
scores of the policy before the update and the tallies of the optimizer steps taken. All else follows from these.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from engine.grpo.log_probs import TokenScores
from engine.training.groups import Drawn, RewardedGroup
from engine.training.scoring import Progress
from engine.training.tally import Tally
from engine.types import Completion, Group, Problem, Reward

DOCUMENT, TENSORS = "in_hand.json", "in_hand.safetensors"


@dataclass(frozen=True, slots=True)
class StepInHand:
    """A step that is sampled; `progress` is None where its update has not begun."""

    drawn: Drawn
    progress: Progress | None = None


def save_step_in_hand(folder: Path, hand: StepInHand) -> None:
    """Write the step into `folder`."""
    members = (*hand.drawn.trained, *hand.drawn.left_out)
    completions = [completion for member in members for completion in member.group.completions]
    log_probs = np.concatenate([completion.sampler_log_probs for completion in completions])
    tensors = {"sampler_log_probs": torch.from_numpy(log_probs)}
    if hand.progress is not None:
        tensors |= {"log_probs": hand.progress.before.log_probs, "entropy": hand.progress.before.entropy}
    document = {
        "draws": hand.drawn.draws,
        "trained": len(hand.drawn.trained),
        "groups": [_as_json(member) for member in members],
        "tallies": None if hand.progress is None else [asdict(tally) for tally in hand.progress.tallies],
    }
    save_file({name: tensor.contiguous().cpu() for name, tensor in tensors.items()}, folder / TENSORS)
    (folder / DOCUMENT).write_text(json.dumps(document))


def load_step_in_hand(folder: Path, device: torch.device) -> StepInHand | None:
    """Return the step that `folder` was saved in, or None where it was saved between two."""
    if not (folder / DOCUMENT).is_file():
        return None
    document = json.loads((folder / DOCUMENT).read_text())
    tensors = load_file(folder / TENSORS)
    log_probs = tensors["sampler_log_probs"].numpy()
    members, place = [], 0
    for group in document["groups"]:
        completions = []
        for fields in group["completions"]:
            length = len(fields["token_ids"])
            completions.append(_completion(fields, log_probs[place : place + length]))
            place += length
        members.append(_rewarded_group(group, completions))
    split = document["trained"]
    drawn = Drawn(tuple(members[:split]), tuple(members[split:]), document["draws"])
    if document["tallies"] is None:
        return StepInHand(drawn)
    before = TokenScores(tensors["log_probs"].to(device), tensors["entropy"].to(device))
    return StepInHand(drawn, Progress(before, [Tally(**tally) for tally in document["tallies"]]))


def _as_json(member: RewardedGroup) -> dict[str, Any]:
    group = member.group
    return {
        "problem": asdict(group.problem),
        "prompt": group.prompt,
        "prompt_token_ids": group.prompt_token_ids,
        "completions": [
            {
                "token_ids": completion.token_ids,
                "text": completion.text,
                "finish_reason": completion.finish_reason,
                "stop": completion.stop,
            }
            for completion in group.completions
        ],
        "rewards": [asdict(reward) for reward in member.rewards],
    }


def _completion(fields: dict[str, Any], log_probs: Any) -> Completion:
    return Completion(**fields | {"token_ids": tuple(fields["token_ids"]), "sampler_log_probs": log_probs})


def _rewarded_group(fields: dict[str, Any], completions: Sequence[Completion]) -> RewardedGroup:
    return RewardedGroup(
        Group(
            problem=Problem(**fields["problem"]),
            prompt=fields["prompt"],
            prompt_token_ids=tuple(fields["prompt_token_ids"]),
            completions=tuple(completions),
        ),
        tuple(Reward(**reward) for reward in fields["rewards"]),
    )
