"""Evaluation: held-out problems, the same ones for every run with these settings."""

from collections.abc import Sequence

from engine.config import RunConfig
from engine.policy.policy import Policy
from engine.rewards.choice import reward_named
from engine.rewards.scoring import score_groups
from engine.rollout.protocol import RolloutEngine, SamplingParams
from engine.tasks.prompts import PromptTemplate
from engine.training.groups import sample_groups
from engine.training.seeds import derive_seed
from engine.types import DecodingMode, EvaluationAnswer, EvaluationRecord, Problem


def evaluate(
    policy: Policy,
    engine: RolloutEngine,
    prompt: PromptTemplate,
    problems: Sequence[Problem],
    config: RunConfig,
    *,
    step: int,
    mode: DecodingMode,
) -> EvaluationRecord:
    """Answer every problem once, by sampling or greedily.

    The sampler's seed depends on the run's seed and the step, so that the answers of two seeds are
    independent draws on the same questions.
    """
    greedy = mode == "greedy"
    sampling = SamplingParams(
        temperature=config.evaluation.temperature,
        max_tokens=config.rollout.max_tokens,
        min_tokens=config.rollout.min_tokens,
        stop_strings=prompt.stop_strings,
        greedy=greedy,
    )
    seed = derive_seed(config.seed, "evaluation", step)
    groups = sample_groups(policy, engine, prompt, problems, n=1, sampling=sampling, seed=seed)
    rewards = [members[0] for members in score_groups(groups, reward_named(prompt.reward))]
    completions = [group.completions[0] for group in groups]
    n = len(problems)
    metrics = {
        "accuracy": sum(reward.verdict == "correct" for reward in rewards) / n,
        "format": sum(reward.parts.get("format", 0.0) for reward in rewards) / n,
        "mean_length": sum(len(completion.token_ids) for completion in completions) / n,
    }
    answers = [
        EvaluationAnswer(problem, 0, completion, reward)
        for problem, completion, reward in zip(problems, completions, rewards, strict=True)
    ]
    temperature = 0.0 if greedy else config.evaluation.temperature
    return EvaluationRecord(step, "validation", mode, temperature, metrics, answers)
