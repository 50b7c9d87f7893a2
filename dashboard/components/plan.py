"""What a config comes to, in sentences: batches, totals, time."""

from dashboard.components.duration import duration
from dashboard.data.pace import Pace
from engine.config import RunConfig


def plan_lines(config: RunConfig, first_step: int = 0) -> list[str]:
    """Return the derived quantities, one Markdown sentence each; `first_step` is where a fork begins."""
    rollout, grpo, evaluation = config.rollout, config.grpo, config.evaluation
    n_steps = grpo.steps - first_step
    updates = config.optimizer_steps_per_step
    policy = "on-policy" if config.on_policy else "off-policy after the first"
    batches = grpo.gradient_accumulation_steps
    evaluations = 1 + len(set(range(first_step + 1, grpo.steps + 1)) & {grpo.steps, *_multiples(config, first_step)})
    modes = "sampled and greedy" if evaluation.greedy else "sampled"
    return [
        f"**{config.prompts_per_step}** {_plural('prompt', config.prompts_per_step)} per step × "
        f"**{rollout.group_size}** completions = {rollout.rollout_batch_size} per rollout batch",
        f"**{updates}** optimizer {_plural('step', updates)} per rollout batch ({policy}), "
        f"{config.train_batch_size} completions each",
        f"Micro-batch of **{config.micro_batch_size}** completions ({batches} per optimizer step)",
        f"**{n_steps * rollout.rollout_batch_size:,}** completions in {n_steps:,} {_plural('step', n_steps)}",
        f"**{evaluations}** evaluations of {evaluation.size} held-out problems ({modes})",
    ]


def expected_time(config: RunConfig, pace: Pace | None, n_seeds: int = 1, first_step: int = 0) -> str:
    """Return how long it will take, from runs like it; or that there is none."""
    if pace is None:
        return "Expected time: no run like it yet (same model, rollout batch size and max tokens)"
    seconds = pace.seconds_per_step * (config.grpo.steps - first_step)
    source = f"{pace.seconds_per_step:.2g} s a step, the mean of {pace.n_runs} {_plural('run', pace.n_runs)} like it"
    return f"Expected time: about **{duration(seconds)}**{' each' if n_seeds > 1 else ''} ({source})"


def _multiples(config: RunConfig, first_step: int) -> range:
    every = config.evaluation.every
    return range((first_step // every + 1) * every, config.grpo.steps + 1, every)


def _plural(noun: str, number: int) -> str:
    return noun if number == 1 else f"{noun}s"
