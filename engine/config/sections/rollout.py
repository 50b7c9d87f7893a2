"""How completions are sampled, and what becomes of those that were cut off."""

from typing import Literal

from engine.config.sections.section import Section, about

TruncatedCompletions = Literal["keep", "mask", "exclude"]


class RolloutConfig(Section):
    """How completions are sampled."""

    engine: Literal["transformers", "vllm"] = about(
        "transformers", "The program that samples; vllm has a section of its own and has to be installed."
    )
    rollout_batch_size: int = about(128, "Completions sampled per step.", unit="completions", ge=2, le=65536)
    group_size: int = about(
        8, "Completions per prompt (G).", unit="completions", ge=2, le=1024, words=("num_generations",)
    )
    temperature: float = about(1.0, "Sampling temperature.", gt=0.0, le=5.0, words=("sampling_temperature",))
    max_tokens: int = about(
        48,
        "Longest completion; longer ones are cut and count as truncated.",
        unit="tokens",
        ge=1,
        le=32768,
        words=("sampling_max_tokens", "max_completion_length"),
    )
    min_tokens: int = about(
        0, "Tokens before an end is allowed.", unit="tokens", ge=0, le=32768, words=("sampling_min_tokens",)
    )
    top_p: float = about(
        1.0, "Sample from the likeliest tokens that together reach this probability; 1 keeps all.", gt=0.0, le=1.0
    )
    top_k: int | None = about(
        None, "Sample from this many likeliest tokens; empty keeps all.", unit="tokens", ge=1, le=1_000_000
    )
    min_p: float = about(
        0.0, "Leave out tokens less likely than this share of the likeliest one's probability.", ge=0.0, lt=1.0
    )
    repetition_penalty: float = about(
        1.0, "Divides the logits of tokens that were already there; 1 changes nothing.", gt=0.0, le=10.0
    )
    dynamic_sampling: bool = about(False, "Draw further prompts in place of groups whose rewards are all equal (DAPO).")
    dynamic_sampling_max_draws: int = about(
        4,
        "Most draws of prompts per step under dynamic sampling; what is missing then is filled up with flat groups.",
        unit="draws",
        ge=1,
        le=64,
    )


class TruncationConfig(Section):
    """What becomes of completions that the length limit cut off."""

    completions: TruncatedCompletions = about(
        "keep",
        "Train on them; leave their tokens out of the loss; or leave their rewards out of the group as well.",
        words=("mask_truncated_completions", "overlong_filtering"),
    )
    overlong_buffer: int | None = about(
        None,
        "The last tokens before max_tokens, over which a penalty on the length rises; empty for none.",
        unit="tokens",
        ge=1,
        le=32768,
    )
    overlong_penalty: float = about(
        1.0, "Penalty at max_tokens, taken off the reward; it rises linearly over the buffer.", gt=0.0, le=100.0
    )
