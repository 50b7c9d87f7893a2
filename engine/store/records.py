"""What reads return: frozen, plain, detached from the database. Field names are column names."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engine.config import RunConfig, parse_config
from engine.types import DecodingMode, FinishReason, FloatArray, GroupKind, Problem, Reward, Split, Verdict

RunStatus = Literal["queued", "starting", "running", "stopping", "succeeded", "failed", "stopped", "lost"]
Level = Literal["info", "warning", "error"]
Covers = Literal["completions", "evaluations"]
RegradeStatus = Literal["running", "finished", "failed", "stopped"]


@dataclass(frozen=True, slots=True)
class Run:
    """One config, one seed.

    `ordinal` counts runs from 1 and never changes. `step` is the last finished step, `seconds` the sum over
    attempts of what each process measured on its monotonic clock. The accuracies are those of the sampled
    evaluation on the split of the config. `error` is the last line of the traceback. `attempts` is their number.
    """

    run_id: str
    ordinal: int
    name: str
    status: RunStatus
    config: dict[str, Any]
    preset: str | None
    seed: int
    arm: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    step: int
    total_steps: int
    seconds: float
    parent_run_id: str | None
    parent_step: int | None
    archived: bool
    stop_requested: bool
    error: str | None
    attempts: int
    best_accuracy: float | None
    last_accuracy: float | None
    first_accuracy: float | None
    best_step: int | None

    def run_config(self) -> RunConfig:
        """Return the stored config as a RunConfig.

        Raises:
            ConfigError: if a field has been renamed or removed since the run was queued.
        """
        return parse_config(self.config)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process of a run. `pid_started_at` is psutil's create_time; with `boot_id` it tells a reused pid."""

    attempt_id: int
    run_id: str
    number: int
    worker_id: str
    host: str
    boot_id: str | None
    pid: int | None
    pid_started_at: float | None
    log_path: str | None
    started_at: datetime
    heartbeat_at: datetime
    ended_at: datetime | None
    outcome: str | None
    traceback: str | None
    exit_code: int | None
    from_step: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that a worker has taken, with the attempt it is to start."""

    run_id: str
    attempt_id: int
    number: int


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process that has reported itself."""

    worker_id: str
    host: str
    pid: int
    started_at: datetime
    heartbeat_at: datetime


@dataclass(frozen=True, slots=True)
class MetricPoint:
    """One value of one metric; NaN and the infinities are values, a metric not logged has no point."""

    name: str
    step: int
    value: float


@dataclass(frozen=True, slots=True)
class MetricTable:
    """Many points as columns of equal length, ordered by run (as asked for), name and step."""

    run_ids: list[str]
    names: list[str]
    steps: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.run_ids)

    def points(self) -> Iterator[tuple[str, MetricPoint]]:
        """Yield `(run_id, point)` row by row."""
        columns = zip(self.run_ids, self.names, self.steps.tolist(), self.values.tolist(), strict=True)
        return ((run_id, MetricPoint(name, step, value)) for run_id, name, step, value in columns)


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """Metrics of single optimizer steps as columns of equal length, ordered by name (as asked for), step and update.

    `updates` has the number of the optimizer step within its step, from 1.
    """

    names: list[str]
    steps: NDArray[np.int64]
    updates: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """The completions of one prompt at one step, summed up.

    `trained` is False where dynamic sampling drew the group and left it out of the update.
    """

    group_id: int
    run_id: str
    step: int
    index: int
    problem_id: str
    question: str
    gold: str
    prompt: str
    kind: GroupKind
    reward_mean: float | None
    reward_std: float | None
    size: int
    n_correct: int
    mean_length: float
    trained: bool = True


@dataclass(frozen=True, slots=True)
class CompletionRow:
    """One sampled answer as judged.

    `entropy` is in nats per token, `mean_log_prob` the sampler's, per token. `kl` estimates the divergence from
    the reference policy, summed over the tokens, in nats; None where the run keeps no reference.
    """

    completion_id: int
    group_id: int
    index: int
    text: str
    reward: float | None
    reward_parts: dict[str, float]
    answer: str | None
    verdict: Verdict
    reason: str
    advantage: float | None
    length: int
    entropy: float | None
    mean_log_prob: float | None
    kl: float | None
    finish_reason: FinishReason
    stop: str | None


@dataclass(frozen=True, slots=True)
class TokenData:
    """The per-token arrays of one completion, all of one length."""

    token_ids: NDArray[np.int32]
    sampler_log_probs: FloatArray
    policy_log_probs: FloatArray | None
    entropy: FloatArray | None


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One evaluation summed up; `n` is the number of answers judged."""

    evaluation_id: int
    run_id: str
    step: int
    split: Split
    mode: DecodingMode
    temperature: float
    n: int
    accuracy: float | None
    metrics: dict[str, float]
    created_at: datetime

    @property
    def samples(self) -> int:
        """The number of answers to each problem (k): that of its majority@k, or 1 where it has none."""
        return max((int(name.partition("@")[2]) for name in self.metrics if name.startswith("majority@")), default=1)

    @property
    def problems(self) -> int:
        """The number of problems."""
        return self.n // self.samples


@dataclass(frozen=True, slots=True)
class EvaluationProblemRow:
    """One problem of an evaluation with the number of its answers, in all and by verdict.

    `first` is the index of its first answer; the others follow it.
    """

    first: int
    problem_id: str
    question: str
    gold: str
    n: int
    correct: int
    wrong: int
    unreadable: int
    not_graded: int

    @property
    def answers(self) -> range:
        """The indices of its answers."""
        return range(self.first, self.first + self.n)


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """How many answers each problem of an evaluation has and how many of them are right, int64 (P,)."""

    n: NDArray[np.int64]
    right: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.n)


@dataclass(frozen=True, slots=True)
class EvaluationAnswerRow:
    """One answer to one evaluation problem."""

    evaluation_id: int
    index: int
    problem_id: str
    question: str
    gold: str
    sample: int
    text: str
    reward: float | None
    reward_parts: dict[str, float]
    answer: str | None
    verdict: Verdict
    reason: str
    length: int
    finish_reason: FinishReason


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run and is worth a line."""

    event_id: int
    run_id: str
    step: int | None
    at: datetime
    kind: str
    level: Level
    message: str


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A state on disk after `step` steps."""

    run_id: str
    step: int
    path: str
    accuracy: float | None
    is_best: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Regrade:
    """What another grader, or a newer version of the same, says of the stored answers of a run.

    It covers the steps `step_from` to `step_to`; `sample` is the number of answers drawn from them, None for all.
    `counts` is a document of `engine.rewards.tally`. `heartbeat_at` is the last sign of life while it is running.
    """

    regrade_id: int
    run_id: str
    reward: str
    version: str
    covers: Covers
    step_from: int
    step_to: int
    sample: int | None
    status: RegradeStatus
    stop_requested: bool
    error: str | None
    done: int
    total: int
    counts: dict[str, Any]
    created_at: datetime
    heartbeat_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """A stored text with what was said of it, to be graded again.

    `owner` is its group or its evaluation, `index` its place there. `completion_id` is None for the answer of an
    evaluation.
    """

    completion_id: int | None
    owner: int
    index: int
    step: int
    problem: Problem
    text: str
    length: int
    finish_reason: FinishReason
    value: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Flip:
    """An answer that a regrading judges in another way, and its new judgement; `seconds` is how long that took."""

    answer: StoredAnswer
    reward: Reward
    seconds: float | None


@dataclass(frozen=True, slots=True)
class FlipRow:
    """A flip as it is read back, with the old judgement and the new one beside each other.

    `index` is that of its group in the step, None for the answer of an evaluation; `split` and `mode` are None for a
    completion.
    """

    place: int
    completion_id: int | None
    evaluation_id: int | None
    answer_index: int | None
    step: int
    index: int | None
    split: Split | None
    mode: DecodingMode | None
    problem_id: str
    question: str
    gold: str
    text: str
    old_value: float | None
    old_verdict: Verdict
    old_answer: str | None
    old_reason: str
    value: float | None
    verdict: Verdict
    answer: str | None
    reason: str
    seconds: float | None
