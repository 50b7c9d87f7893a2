"""Advantage, loss, aggregation and reuse; the KL term and the entropy bonus."""

from typing import Literal

from engine.config.sections.section import Section, about

LossType = Literal["no_baseline", "reinforce_with_baseline", "grpo_no_clip", "grpo_clip", "cispo"]
RatioLevel = Literal["token", "sequence"]
ImportanceCorrection = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
Baseline = Literal["none", "group_mean", "leave_one_out"]
Scale = Literal["none", "group_std", "batch_std"]
LearnFrom = Literal["all", "correct"]
StdKind = Literal["sample", "population"]
Aggregation = Literal["mean", "constant", "microbatch", "token"]
KlEstimator = Literal["k1", "k2", "k3"]
KlPlacement = Literal["loss", "reward"]
KlReference = Literal["start", "ema", "copy"]


class GrpoConfig(Section):
    """The algorithm: advantage, loss, aggregation and reuse of a rollout batch."""

    steps: int = about(
        100,
        "Rollout batches to train on.",
        unit="steps",
        ge=0,
        le=1_000_000,
        words=("steps", "n_grpo_steps", "max_steps"),
    )
    learn_from: LearnFrom = about(
        "all", "Completions that take part in the loss; `correct` gives each an advantage of 1 (expert iteration)."
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


class KlConfig(Section):
    """The pull towards a reference policy; at beta 0 there is none, and no reference is kept."""

    beta: float = about(
        0.0,
        "Weight of the KL divergence from the reference policy; under a target, where it starts.",
        ge=0.0,
        le=100.0,
        words=("kl_loss_coef", "kl_coef", "init_kl_coef"),
    )
    estimator: KlEstimator = about(
        "k3",
        "Estimate per token from d = log p_ref − log p: k1 = −d, k2 = d²/2, k3 = exp(d) − d − 1.",
        words=("kl_loss_type", "kl_estimator"),
    )
    placement: KlPlacement = about(
        "loss", "Whether the estimate is a term of the loss or is taken off the reward of its completion."
    )
    target: float | None = about(
        None,
        "Divergence that the adaptive controller aims for by changing beta; empty keeps beta as it is.",
        unit="nats/token",
        gt=0.0,
        le=100.0,
        words=("kl_target", "target_kl"),
    )
    gain: float = about(
        0.1,
        "How fast the controller moves: beta changes by this times the relative error (at most 20 %) per step.",
        gt=0.0,
        le=4.0,
    )
    reference: KlReference = about(
        "start", "The start weights, their exponential moving average, or a copy renewed now and then."
    )
    ema_decay: float = about(0.99, "Share of the reference `ema` that each step keeps.", gt=0.0, lt=1.0)
    copy_every: int = about(
        50,
        "Steps between renewals of the reference `copy`.",
        unit="steps",
        ge=1,
        le=1_000_000,
        words=("ref_model_sync_steps",),
    )
    measure: bool = about(False, "Keep a reference and log the divergence from it even at beta 0.")


class EntropyConfig(Section):
    """A reward for keeping the policy's distribution wide."""

    bonus: float = about(
        0.0,
        "Weight of the entropy in the objective; under a target, where it starts.",
        ge=0.0,
        le=10.0,
        words=("entropy_coeff", "entropy_coef"),
    )
    target: float | None = about(
        None,
        "Entropy to hold: the bonus acts below it only and grows there step by step; empty keeps the bonus as it is.",
        unit="nats/token",
        gt=0.0,
        le=20.0,
    )
    change: float = about(0.001, "How much the bonus grows or shrinks per step under a target.", gt=0.0, le=1.0)
