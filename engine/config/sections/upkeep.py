"""What goes on beside the training: evaluation, stopping, checkpoints, logging."""

from typing import Literal

from engine.config.sections.section import Section, about


class EvaluationConfig(Section):
    """Accuracy on held-out problems, the same ones for every run with these settings."""

    every: int = about(
        10,
        "Steps between evaluations; step 0, the end of SFT and the last step are always evaluated.",
        unit="steps",
        ge=1,
        le=1_000_000,
    )
    size: int = about(
        1024, "Held-out problems answered: all of them where there are fewer.", unit="problems", ge=1, le=65536
    )
    samples: int = about(
        1,
        "Answers sampled to each problem (k); from 2 on there are pass@k and majority@k.",
        unit="answers",
        ge=1,
        le=1024,
        words=("num_samples",),
    )
    split: Literal["validation", "test"] = about("validation", "Which held-out problems.")
    temperature: float = about(1.0, "Sampling temperature of the sampled evaluation.", gt=0.0, le=5.0)
    greedy: bool = about(True, "Evaluate greedy decoding as well.")
    seed: int = about(0, "Chooses the held-out problems.", ge=0, le=2**31 - 1)


class StoppingConfig(Section):
    """When a run ends before its last step."""

    max_minutes: float | None = about(
        None, "Time limit; the run stops after the step in hand.", unit="minutes", gt=0.0, le=1e6
    )
    max_sampled_tokens: int | None = about(
        None,
        "Budget of tokens sampled for training or shown in SFT; the run stops after the step that reaches it.",
        unit="tokens",
        ge=1,
        le=10**15,
    )
    patience: int | None = about(
        None,
        "Evaluations in a row without a gain in validation accuracy after which the run stops; empty never does.",
        unit="evaluations",
        ge=1,
        le=1000,
    )
    min_gain: float = about(
        0.0, "Smallest rise of validation accuracy over the best one that counts as a gain.", ge=0.0, le=1.0
    )
    max_not_graded: float = about(
        0.25,
        "Share of a step's completions that the reward may fail to judge; a step with more fails the run.",
        ge=0.0,
        le=1.0,
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

    every: int = about(
        20,
        "Steps between checkpoints; the end of SFT and the last step always have one.",
        unit="steps",
        ge=1,
        le=1_000_000,
    )
    keep: int = about(2, "Newest checkpoints kept; the best by validation accuracy is kept besides.", ge=1, le=1000)


class LoggingConfig(Section):
    """What the store keeps."""

    completions: bool = about(True, "Store every completion of every group.")
    token_data: bool = about(True, "Store token ids, log-probs and entropy of every completion.")
    entropy_share: float = about(
        1.0, "Share of completions, drawn anew each step, whose entropy is computed; 0 for none.", ge=0.0, le=1.0
    )
