"""Rules that span fields, and remarks that are worth reading but forbid nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.errors import ConfigError, FieldProblem

if TYPE_CHECKING:
    from engine.config.run_config import RunConfig

WITHOUT_RATIO = ("no_baseline", "reinforce_with_baseline")
# Ten times GSPO's own range and more.
WIDE_FOR_SEQUENCES = 0.01


def check_rules(config: "RunConfig") -> None:
    """Raise ConfigError with every broken rule at once."""
    problems = tuple(_problems(config))
    if problems:
        raise ConfigError(problems)


def remarks(config: "RunConfig") -> tuple[str, ...]:
    """Return sentences about settings that have no effect or an unusual one."""
    return tuple(_remarks(config))


def _problems(config: "RunConfig") -> Iterator[FieldProblem]:
    rollout, grpo, task = config.rollout, config.grpo, config.task
    rows, group_size = rollout.rollout_batch_size, rollout.group_size
    if rows % group_size:
        yield FieldProblem(
            "rollout.rollout_batch_size",
            f"rollout_batch_size={rows} is not a multiple of group_size={group_size}; {_nearest(rows, group_size)}",
        )
    if rollout.min_tokens > rollout.max_tokens:
        yield FieldProblem(
            "rollout.min_tokens",
            f"min_tokens={rollout.min_tokens} is above max_tokens={rollout.max_tokens}; "
            f"use at most {rollout.max_tokens}",
        )
    train_batch = config.train_batch_size
    if train_batch > rows:
        yield FieldProblem(
            "grpo.train_batch_size",
            f"train_batch_size={train_batch} is above rollout_batch_size={rows}; use at most {rows}",
        )
    elif rows % train_batch:
        divisors = [size for size in range(1, rows + 1) if rows % size == 0]
        below = max(size for size in divisors if size < train_batch)
        above = min(size for size in divisors if size > train_batch)
        yield FieldProblem(
            "grpo.train_batch_size",
            f"train_batch_size={train_batch} does not divide rollout_batch_size={rows}; use {below} or {above}",
        )
    accumulation = grpo.gradient_accumulation_steps
    if train_batch % accumulation:
        fitting = [steps for steps in range(1, train_batch + 1) if train_batch % steps == 0]
        nearest = sorted(fitting, key=lambda steps: (abs(steps - accumulation), steps))[:2]
        yield FieldProblem(
            "grpo.gradient_accumulation_steps",
            f"gradient_accumulation_steps={accumulation} does not divide train_batch_size={train_batch}; "
            f"use {' or '.join(str(steps) for steps in sorted(nearest))}",
        )
    yield from _baseline_problems(config)
    yield from _ratio_problems(config)
    if grpo.aggregation_constant is not None and grpo.aggregation != "constant":
        yield FieldProblem(
            "grpo.aggregation_constant",
            f"aggregation_constant={grpo.aggregation_constant} is used by aggregation=constant only, "
            f"not by aggregation={grpo.aggregation}; leave it empty or set aggregation=constant",
        )
    if config.optimizer.warmup_steps > grpo.steps:
        yield FieldProblem(
            "optimizer.warmup_steps",
            f"warmup_steps={config.optimizer.warmup_steps} is above steps={grpo.steps}; use at most {grpo.steps}",
        )
    if task.operands_min > task.operands_max:
        yield FieldProblem(
            "task.operands_min",
            f"operands_min={task.operands_min} is above operands_max={task.operands_max}; "
            f"use at most {task.operands_max}",
        )


def _baseline_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    grpo = config.grpo
    if grpo.loss_type == "no_baseline" and (grpo.baseline != "none" or grpo.scale != "none"):
        yield FieldProblem(
            "grpo.loss_type",
            f"loss_type=no_baseline uses raw rewards, but baseline={grpo.baseline} and scale={grpo.scale}; "
            "set baseline=none and scale=none, or choose loss_type=reinforce_with_baseline",
        )
    if grpo.loss_type == "reinforce_with_baseline" and grpo.baseline == "none":
        yield FieldProblem(
            "grpo.baseline",
            "baseline=none contradicts loss_type=reinforce_with_baseline; "
            "use baseline=group_mean, baseline=leave_one_out or loss_type=no_baseline",
        )


def _ratio_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    grpo = config.grpo
    if grpo.dual_clip is not None and grpo.loss_type != "grpo_clip":
        yield FieldProblem(
            "grpo.dual_clip",
            f"dual_clip={grpo.dual_clip:g} is used by loss_type=grpo_clip only, not by loss_type={grpo.loss_type}; "
            "leave it empty or set loss_type=grpo_clip",
        )
    if grpo.ratio_level == "sequence" and grpo.loss_type in WITHOUT_RATIO:
        yield FieldProblem(
            "grpo.ratio_level",
            f"ratio_level=sequence has no meaning under loss_type={grpo.loss_type}, which has no ratio; "
            "use ratio_level=token or loss_type=grpo_clip",
        )


def _remarks(config: "RunConfig") -> Iterator[str]:
    grpo = config.grpo
    if grpo.loss_type == "grpo_clip" and config.on_policy:
        yield (
            "The clip cannot act: with one optimizer step per rollout batch the ratio is 1 everywhere. "
            "The gradient equals that of grpo_no_clip and reinforce_with_baseline."
        )
    if grpo.loss_type == "cispo" and config.on_policy:
        yield (
            "The cap of cispo cannot act: with one optimizer step per rollout batch the ratio is 1 everywhere. "
            "The gradient equals that of reinforce_with_baseline."
        )
    if grpo.loss_type == "cispo":
        yield f"cispo has no lower bound: a weight is capped at {1 + config.clip_eps_high:g} and may fall to 0."
    if grpo.ratio_level == "sequence" and grpo.loss_type == "grpo_clip" and grpo.clip_eps >= WIDE_FOR_SEQUENCES:
        yield (
            f"clip_eps={grpo.clip_eps:g} hardly ever binds on a sequence's ratio, a mean over its tokens; "
            "GSPO uses clip_eps=0.0003 and clip_eps_high=0.0004."
        )
    if grpo.importance_correction != "none" and config.rollout.engine == "transformers":
        yield (
            f"importance_correction={grpo.importance_correction} has next to nothing to correct: with "
            "engine=transformers sampler and trainer are one model, and their probabilities differ by rounding alone."
        )
    if not config.on_policy and grpo.loss_type in WITHOUT_RATIO:
        yield (
            f"{grpo.loss_type} has no importance ratio, and {config.optimizer_steps_per_step} optimizer steps "
            "share one rollout batch: all but the first are off-policy and uncorrected."
        )
    if grpo.baseline == "none" and grpo.loss_type != "no_baseline":
        flat = ", and flat groups still carry a gradient" if grpo.scale != "group_std" else ""
        yield f"Without a baseline every rewarded completion is pushed up{flat}."
    if grpo.scale == "none" and grpo.std != "sample":
        yield f"std={grpo.std} has no effect: with scale=none nothing is divided by a standard deviation."
    if config.checkpoints.every % config.evaluation.every:
        yield (
            f"Checkpoints come every {config.checkpoints.every} steps, evaluations every {config.evaluation.every}: "
            "a checkpoint of a step without an evaluation cannot be marked as the best."
        )


def _nearest(value: int, step: int) -> str:
    below, above = value // step * step, (value // step + 1) * step
    return f"use {below} or {above}" if below else f"use {above}"
