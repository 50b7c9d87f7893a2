"""What a config comes to, in sentences: batches, totals, time."""

from dashboard.components.duration import duration
from dashboard.data.pace import Pace
from engine.config import RunConfig

_SPLITS = {"validation": "held-out", "test": "test"}


def plan_lines(config: RunConfig, first_step: int = 0) -> list[str]:
    """Return the derived quantities, one Markdown sentence each; `first_step` is where a fork begins."""
    evaluation, evaluations = config.evaluation, 1 + len(_evaluated(config, first_step))
    several = "" if evaluation.samples == 1 else f" {evaluation.samples:,} times each"
    modes = f"sampled{several}{' and greedy' if evaluation.greedy else ''}"
    return [
        *_sft_lines(config, first_step),
        *_grpo_lines(config, first_step),
        f"**{evaluations}** {_plural('evaluation', evaluations)} of {evaluation.size:,} {_SPLITS[evaluation.split]} "
        f"problems ({modes})",
    ]


def expected_time(config: RunConfig, pace: Pace | None, n_seeds: int = 1, first_step: int = 0) -> str:
    """Return how long it will take, from runs like it; or that there is none."""
    if config.total_steps == 0:
        evaluation = config.evaluation
        answers = evaluation.size * (evaluation.samples + evaluation.greedy)
        return f"Evaluation only: **{answers:,}** answers of at most {config.rollout.max_tokens:,} tokens, no training"
    if pace is None:
        return "Expected time: no run like it yet (same model, SFT, rollout batch size and max tokens)"
    seconds = pace.seconds_per_step * (config.total_steps - first_step)
    source = f"{pace.seconds_per_step:.2g} s a step, the mean of {pace.n_runs} {_plural('run', pace.n_runs)} like it"
    return f"Expected time: about **{duration(seconds)}**{' each' if n_seeds > 1 else ''} ({source})"


def _sft_lines(config: RunConfig, first_step: int) -> list[str]:
    n_steps = max(0, config.sft.steps - first_step)
    if not n_steps:
        return []
    source = "the file's" if config.sft.path else "the task's"
    place = "before GRPO" if config.grpo.steps else "and nothing else"
    return [f"**{n_steps:,}** {_plural('step', n_steps)} of SFT on {source} demonstrations, {place}"]


def _grpo_lines(config: RunConfig, first_step: int) -> list[str]:
    if not config.grpo.steps:
        return []
    rollout, updates = config.rollout, config.optimizer_steps_per_step
    n_steps = config.total_steps - max(first_step, config.sft.steps)
    policy = "on-policy" if config.on_policy else "off-policy after the first"
    batches = config.grpo.gradient_accumulation_steps
    return [
        f"**{config.prompts_per_step}** {_plural('prompt', config.prompts_per_step)} per step × "
        f"**{rollout.group_size}** completions = {rollout.rollout_batch_size} per rollout batch",
        f"**{updates}** optimizer {_plural('step', updates)} per rollout batch ({policy}), "
        f"{config.train_batch_size} completions each",
        f"Micro-batch of **{config.micro_batch_size}** completions ({batches} per optimizer step)",
        f"**{n_steps * rollout.rollout_batch_size:,}** completions in {n_steps:,} {_plural('step', n_steps)}",
    ]


def _evaluated(config: RunConfig, first_step: int) -> set[int]:
    """Return the steps behind `first_step` that an evaluation follows."""
    every, last = config.evaluation.every, config.total_steps
    multiples = range((first_step // every + 1) * every, last + 1, every)
    return {step for step in (*multiples, config.sft.steps, last) if step > first_step}


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"
