"""The sections of a RunConfig: each field with its default, range, unit and one sentence."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LossType = Literal["no_baseline", "reinforce_with_baseline", "grpo_no_clip", "grpo_clip", "cispo"]
RatioLevel = Literal["token", "sequence"]
ImportanceCorrection = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
Baseline = Literal["none", "group_mean", "leave_one_out"]
Scale = Literal["none", "group_std", "batch_std"]
StdKind = Literal["sample", "population"]
Aggregation = Literal["mean", "constant", "microbatch", "token"]
Schedule = Literal["constant", "linear", "cosine"]
PromptName = Literal["r1_zero", "question_only"]
Operator = Literal["+", "-"]


def about(default: Any, sentence: str, *, unit: str = "", words: tuple[str, ...] = (), **rules: Any) -> Any:
    """Declare a field.

    `words` are the names that other programs use for it; they are accepted wherever a config is read.
    """
    return Field(default, description=sentence, json_schema_extra={"unit": unit, "words": list(words)}, **rules)


class Section(BaseModel):
    """Base of every section: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)


class ModelConfig(Section):
    """The language model that is trained."""

    name: str = about("tiny-math", "`tiny-math` (embedded), a hub name, or a local folder.", min_length=1)
    dtype: Literal["float32", "bfloat16"] = about("float32", "Number format of weights and activations.")
    device: Literal["auto", "cpu", "cuda"] = about("auto", "Where the model runs; auto takes a GPU if there is one.")
    threads: int | None = about(
        None,
        "CPU threads; empty takes the share of cores that the worker gives the run.",
        unit="threads",
        ge=1,
        le=256,
    )


class TaskConfig(Section):
    """Where the problems come from."""

    name: Literal["arithmetic"] = about("arithmetic", "The task; `arithmetic` generates its problems.")
    operands_min: int = about(2, "Fewest numbers in one problem.", unit="numbers", ge=2, le=8)
    operands_max: int = about(4, "Most numbers in one problem.", unit="numbers", ge=2, le=8)
    largest_operand: int = about(20, "Largest number in a problem.", ge=2, le=999)
    operators: tuple[Operator, ...] = about(("+", "-"), "Operators that may stand between numbers.", min_length=1)


class PromptConfig(Section):
    """How a question is put to the model; the prompt brings its reward and its stop strings."""

    name: PromptName = about("r1_zero", "`r1_zero` asks for tags, `question_only` for a boxed answer.")


class RolloutConfig(Section):
    """How completions are sampled."""

    engine: Literal["transformers"] = about("transformers", "The program that samples.")
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


class GrpoConfig(Section):
    """The algorithm: advantage, loss, aggregation and reuse of a rollout batch."""

    steps: int = about(
        100,
        "Rollout batches to train on.",
        unit="steps",
        ge=1,
        le=1_000_000,
        words=("n_grpo_steps", "max_steps"),
    )
    loss_type: LossType = about("grpo_clip", "Policy-gradient loss per token.")
    baseline: Baseline = about(
        "group_mean", "What is subtracted from a reward; `leave_one_out` is the mean of the group's others."
    )
    scale: Scale = about(
        "group_std",
        "What an advantage is divided by: the group's standard deviation or that of the whole rollout batch.",
        words=("use_std_normalization", "scale_rewards"),
    )
    std: StdKind = about("sample", "Standard deviation with n − 1 (`sample`) or n (`population`).")
    advantage_eps: float = about(1e-6, "Added to the standard deviation before the division.", ge=0.0, le=1.0)
    clip_eps: float = about(
        0.2, "The ratio is clipped below at 1 − this.", gt=0.0, lt=1.0, words=("cliprange", "epsilon")
    )
    clip_eps_high: float | None = about(
        None,
        "The ratio is clipped (under cispo: its weight capped) above at 1 + this; empty takes clip_eps.",
        gt=0.0,
        le=10.0,
        words=("epsilon_high",),
    )
    dual_clip: float | None = about(
        None,
        "At a negative advantage the ratio is clipped above at this; empty leaves it free.",
        gt=1.0,
        le=1000.0,
        words=("clip_ratio_c", "delta"),
    )
    ratio_level: RatioLevel = about(
        "token",
        "The ratio of each token, or of the whole sequence: the geometric mean over its tokens.",
        words=("importance_sampling_level",),
    )
    importance_correction: ImportanceCorrection = about(
        "none",
        "How losses are corrected for a sampler whose probabilities differ from the trainer's.",
        words=("vllm_importance_sampling_mode",),
    )
    importance_cap: float = about(
        3.0,
        "Importance weights above this are truncated to it, or their token or sequence is left out.",
        ge=1.0,
        le=1000.0,
        words=("vllm_importance_sampling_clip_max", "vllm_importance_sampling_cap"),
    )
    aggregation: Aggregation = about("mean", "How per-token losses become one number.", words=("normalize_mode",))
    aggregation_constant: int | None = about(
        None,
        "Length that `constant` divides by; empty takes rollout.max_tokens.",
        unit="tokens",
        ge=1,
        le=1_000_000,
        words=("normalize_constant",),
    )
    epochs_per_rollout_batch: int = about(
        1, "Passes over one rollout batch.", unit="epochs", ge=1, le=64, words=("num_iterations",)
    )
    train_batch_size: int | None = about(
        None,
        "Completions per optimizer step; empty takes the whole rollout batch.",
        unit="completions",
        ge=1,
        le=65536,
    )
    gradient_accumulation_steps: int = about(
        1,
        "Micro-batches per optimizer step; changes memory, never the gradient.",
        unit="micro-batches",
        ge=1,
        le=4096,
    )


class OptimizerConfig(Section):
    """AdamW and its schedule."""

    name: Literal["adamw"] = about("adamw", "The optimizer.")
    learning_rate: float = about(1e-4, "Peak learning rate.", gt=0.0, le=1.0)
    beta1: float = about(0.9, "Decay of the first moment.", ge=0.0, lt=1.0)
    beta2: float = about(0.95, "Decay of the second moment.", ge=0.0, lt=1.0)
    adam_eps: float = about(1e-8, "Added to the root of the second moment.", gt=0.0, le=1.0)
    weight_decay: float = about(0.0, "Decoupled weight decay.", ge=0.0, le=1.0)
    max_grad_norm: float = about(1.0, "Gradients with a larger norm are scaled to it.", gt=0.0, le=1e6)
    schedule: Schedule = about("constant", "Shape of the learning rate after warm-up.")
    warmup_steps: int = about(0, "Steps of linear warm-up from zero.", unit="steps", ge=0, le=1_000_000)


class EvaluationConfig(Section):
    """Accuracy on held-out problems, the same ones for every run with these settings."""

    every: int = about(
        10,
        "Steps between evaluations; step 0 and the last are always evaluated.",
        unit="steps",
        ge=1,
        le=1_000_000,
    )
    size: int = about(256, "Held-out problems answered.", unit="problems", ge=1, le=65536)
    temperature: float = about(1.0, "Sampling temperature of the sampled evaluation.", gt=0.0, le=5.0)
    greedy: bool = about(True, "Evaluate greedy decoding as well.")
    seed: int = about(0, "Chooses the held-out problems.", ge=0, le=2**31 - 1)


class StoppingConfig(Section):
    """When a run ends before its last step."""

    max_minutes: float | None = about(
        None, "Time limit; the run stops after the step in hand.", unit="minutes", gt=0.0, le=1e6
    )
    max_nonfinite_updates: int = about(
        5,
        "Skipped updates in a row (non-finite loss or gradient) after which the run fails.",
        unit="updates",
        ge=1,
        le=1000,
    )


class CheckpointConfig(Section):
    """What can be resumed and forked from."""

    every: int = about(20, "Steps between checkpoints; the last step always has one.", unit="steps", ge=1, le=1_000_000)
    keep: int = about(2, "Newest checkpoints kept; the best by validation accuracy is kept besides.", ge=1, le=1000)


class LoggingConfig(Section):
    """What the store keeps."""

    completions: bool = about(True, "Store every completion of every group.")
    token_data: bool = about(True, "Store token ids, log-probs and entropy of every completion.")
