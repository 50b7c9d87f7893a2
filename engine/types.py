"""The values that cross layer borders: frozen, plain, free of torch and of the store.

Axes: P prompts, G completions of one prompt (a group), B = P·G rows, T tokens, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

FinishReason = Literal["eos", "stop", "length"]
Verdict = Literal["correct", "wrong", "unreadable", "not_graded"]
Split = Literal["train", "validation", "test"]
GroupKind = Literal["mixed", "all_correct", "all_wrong", "tied"]
DecodingMode = Literal["sampled", "greedy"]

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its gold answer; `problem_id` is stable across runs of one task."""

    problem_id: str
    question: str
    gold: str
    split: Split = "train"


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A prompt as it is put to the model, and a response to be learned word for word."""

    prompt: str
    response: str


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled answer. `token_ids` are what the sampler drew, the end token included.

    `sampler_log_probs` has one value per token: of the distribution it was drawn from.
    `stop` is the stop string that ended the text, kept in it.
    """

    token_ids: tuple[int, ...]
    text: str
    sampler_log_probs: FloatArray
    finish_reason: FinishReason
    stop: str | None = None


@dataclass(frozen=True, slots=True)
class Reward:
    """A verdict on one completion. `value` is None exactly when `verdict` is "not_graded"."""

    value: float | None
    parts: Mapping[str, float]
    answer: str | None
    verdict: Verdict
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """The G completions of one prompt."""

    problem: Problem
    prompt: str
    prompt_token_ids: tuple[int, ...]
    completions: tuple[Completion, ...]


@dataclass(frozen=True, slots=True)
class CompletionRecord:
    """A completion as it is stored: what was sampled, how it was judged, what it was worth.

    `advantage` is None where the reward is missing. `policy_log_probs` and `entropy` are per token,
    taken before the update; None where the trainer did not compute them. `kl` is the estimate of
    KL(policy || reference) summed over the tokens, in nats; None where no reference policy is kept.
    """

    completion: Completion
    reward: Reward
    advantage: float | None
    policy_log_probs: FloatArray | None = None
    entropy: FloatArray | None = None
    kl: float | None = None


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group as it is stored, with the statistics its advantages were computed from.

    `trained` is False where dynamic sampling drew the group and left it out of the update.
    """

    problem: Problem
    prompt: str
    prompt_token_ids: tuple[int, ...]
    kind: GroupKind
    reward_mean: float | None
    reward_std: float | None
    completions: tuple[CompletionRecord, ...]
    trained: bool = True


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Everything that one step (one rollout batch) leaves behind. Steps count from 1.

    `updates` has the metrics of each optimizer step in its order, where there were several.
    """

    step: int
    metrics: Mapping[str, float]
    groups: Sequence[GroupRecord] = ()
    updates: Sequence[Mapping[str, float]] = ()


@dataclass(frozen=True, slots=True)
class EvaluationAnswer:
    """One completion of one evaluation problem."""

    problem: Problem
    sample: int
    completion: Completion
    reward: Reward


@dataclass(frozen=True, slots=True)
class EvaluationRecord:
    """An evaluation of the policy after `step` steps (0 = the start policy)."""

    step: int
    split: Split
    mode: DecodingMode
    temperature: float
    metrics: Mapping[str, float]
    answers: Sequence[EvaluationAnswer] = field(default=())
