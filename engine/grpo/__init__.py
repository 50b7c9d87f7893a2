"""The maths of GRPO: arrays and numbers in, arrays and small named tuples out.

Everything but `log_probs` and `cs336` is written over the array API, so that the trainer passes torch tensors, the
inspector passes numpy arrays, and both run the same code. Nothing is imported here until it is asked for: a
process that replays an advantage must not load torch.

`from engine.grpo import compute_grpo_clip_loss` and the like give the functions of `engine.grpo.cs336`.

Axes: P prompts, G completions of one prompt, B = P·G rows, T tokens, V vocabulary.
"""

from importlib import import_module
from typing import Any

__all__ = [
    "compute_entropy",
    "compute_group_normalized_rewards",
    "compute_grpo_clip_loss",
    "compute_naive_policy_gradient_loss",
    "compute_policy_gradient_loss",
    "get_response_log_probs",
    "grpo_microbatch_train_step",
    "masked_mean",
    "masked_normalize",
    "sft_microbatch_train_step",
    "tokenize_prompt_and_output",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module("engine.grpo.cs336"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
