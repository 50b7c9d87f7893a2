"""Evaluation: held-out problems, the same ones for every run with these settings."""

from collections.abc import Sequence

from engine.config import RunConfig
from engine.policy.policy import Policy
from engine.rewards.choice import reward_named
from engine.rewards.scoring import score_groups
from engine.rollout.protocol import RolloutEngine, SamplingParams
from engine.stats.majority_at_k import Vote, majority_at_k
from engine.stats.pass_at_k import curve_points, pass_at_k
from engine.tasks.prompts import PromptTemplate
from engine.training.groups import sample_groups
from engine.training.seeds import derive_seed
from engine.types import DecodingMode, EvaluationAnswer, EvaluationRecord, Problem, Reward


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
    """Answer every problem, `evaluation.samples` times by sampling or once greedily, and judge the answers.

    The answers are stored problem by problem, those to one problem numbered from 0. The sampler's seed depends on
    the run's seed and the step, so that the answers of two seeds are independent draws on the same questions. It
    draws at `evaluation.temperature` from the whole distribution: the cuts of the rollout (top-p, top-k, min-p,
    repetition penalty) are left out, so that runs which differ in them are measured alike.
    """
    greedy = mode == "greedy"
    sampling = SamplingParams(
        temperature=config.evaluation.temperature,
        max_tokens=config.rollout.max_tokens,
        min_tokens=config.rollout.min_tokens,
        stop_strings=prompt.stop_strings,
        greedy=greedy,
    )
    seed, samples = derive_seed(config.seed, "evaluation", step), 1 if greedy else config.evaluation.samples
    groups = sample_groups(policy, engine, prompt, problems, n=samples, sampling=sampling, seed=seed)
    rewards = score_groups(groups, reward_named(prompt.reward))
    answers = [
        EvaluationAnswer(group.problem, sample, completion, reward)
        for group, members in zip(groups, rewards, strict=True)
        for sample, (completion, reward) in enumerate(zip(group.completions, members, strict=True))
    ]
    metrics = _means(answers) | (_of_several(rewards) if samples > 1 else {})
    temperature = 0.0 if greedy else config.evaluation.temperature
    return EvaluationRecord(step, config.evaluation.split, mode, temperature, metrics, answers)


def _means(answers: Sequence[EvaluationAnswer]) -> dict[str, float]:
    """Return what is counted over all answers alike; one that was not graded is not right."""
    n, rewards = len(answers), [answer.reward for answer in answers]
    return {
        "accuracy": sum(reward.verdict == "correct" for reward in rewards) / n,
        "format": sum(reward.parts.get("format", 0.0) for reward in rewards) / n,
        "mean_length": sum(len(answer.completion.token_ids) for answer in answers) / n,
        "not_graded": sum(reward.verdict == "not_graded" for reward in rewards) / n,
    }


def _of_several(rewards: Sequence[Sequence[Reward]]) -> dict[str, float]:
    """Return pass@k and majority@k of the rewards (P, k) of several answers to each problem."""
    k = len(rewards[0])
    right = [sum(reward.verdict == "correct" for reward in members) for members in rewards]
    passed = {f"pass@{drawn}": float(pass_at_k(k, right, drawn).mean()) for drawn in curve_points(k)}
    return passed | {f"majority@{k}": majority_at_k([[_vote(reward) for reward in members] for members in rewards])}


def _vote(reward: Reward) -> Vote:
    """Return the vote of a judged answer; one that was unreadable is none, whatever was found in it."""
    return Vote(None if reward.verdict == "unreadable" else reward.answer, reward.verdict == "correct")
