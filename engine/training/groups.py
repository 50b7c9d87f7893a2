"""Groups of completions: sampled, and given their advantages."""

from collections.abc import Sequence

import numpy as np

from engine.config import RunConfig
from engine.grpo.advantages import AdvantageStats, group_advantages
from engine.policy.policy import Policy
from engine.rollout.protocol import RolloutEngine, SamplingParams
from engine.tasks.prompts import PromptTemplate
from engine.types import Group, Problem, Reward


def sample_groups(
    policy: Policy,
    engine: RolloutEngine,
    prompt: PromptTemplate,
    problems: Sequence[Problem],
    *,
    n: int,
    sampling: SamplingParams,
    seed: int,
) -> list[Group]:
    """Return one group of `n` completions for each problem."""
    prompts = [prompt.render(problem.question) for problem in problems]
    prompt_token_ids = [policy.encode(text) for text in prompts]
    sampled = engine.generate(prompt_token_ids, n=n, sampling=sampling, seed=seed)
    return [
        Group(problem, text, token_ids, tuple(completions))
        for problem, text, token_ids, completions in zip(problems, prompts, prompt_token_ids, sampled, strict=True)
    ]


def assign_advantages(rewards: Sequence[Sequence[Reward]], config: RunConfig) -> AdvantageStats:
    """Return the advantages (P, G) of graded groups under the run's settings, in float64."""
    values = [[np.nan if reward.value is None else reward.value for reward in members] for members in rewards]
    return group_advantages(
        np.array(values, np.float64),
        baseline=config.grpo.baseline,
        scale=config.grpo.scale,
        std=config.grpo.std,
        eps=config.grpo.advantage_eps,
    )
