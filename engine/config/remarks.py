"""Remarks on a config: settings without effect or with an unusual one. Worth reading; they forbid nothing."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.config.prompt_forms import own_reward, reward_name
from engine.config.rules import WITHOUT_RATIO
from engine.config.sections import EntropyConfig, KlConfig, RewardConfig, SftConfig, TaskConfig, VllmConfig
from engine.config.task_fields import OF_DATA, READ_BY

if TYPE_CHECKING:
    from engine.config.run_config import RunConfig

# Ten times GSPO's own range and more.
WIDE_FOR_SEQUENCES = 0.01


def remarks(config: "RunConfig") -> tuple[str, ...]:
    """Return sentences about settings that have no effect or an unusual one."""
    return tuple(_remarks(config))


def _remarks(config: "RunConfig") -> Iterator[str]:
    if config.grpo.steps:
        yield from _grpo_remarks(config)
        yield from _kl_remarks(config)
        yield from _sampler_remarks(config)
        yield from _length_remarks(config)
        yield from _reward_remarks(config)
    yield from _vllm_remarks(config)
    yield from _sft_remarks(config)
    yield from _task_remarks(config)
    if config.total_steps:
        yield from _training_remarks(config)


def _training_remarks(config: "RunConfig") -> Iterator[str]:
    if config.entropy.target is None and config.entropy.change != EntropyConfig().change:
        yield "entropy.change has no effect without entropy.target."
    if config.stopping.patience is None and config.stopping.min_gain > 0:
        yield f"min_gain={config.stopping.min_gain:g} has no effect without patience."
    if config.model.dtype == "bfloat16" and config.lora.rank is None and config.optimizer.learning_rate < 1e-5:
        yield (
            f"In bfloat16 a step of learning_rate={config.optimizer.learning_rate:g} is mostly lost to rounding: "
            "weights keep 8 bits. Use a higher rate, float32 or adapters (lora.rank)."
        )
    if config.checkpoints.every % config.evaluation.every:
        yield (
            f"Checkpoints come every {config.checkpoints.every} steps, evaluations every {config.evaluation.every}: "
            "a checkpoint of a step without an evaluation cannot be marked as the best."
        )


def _grpo_remarks(config: "RunConfig") -> Iterator[str]:
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
    if not config.on_policy and grpo.loss_type in WITHOUT_RATIO and grpo.learn_from == "all":
        yield (
            f"{grpo.loss_type} has no importance ratio, and {config.optimizer_steps_per_step} optimizer steps "
            "share one rollout batch: all but the first are off-policy and uncorrected."
        )
    if grpo.baseline == "none" and grpo.loss_type != "no_baseline":
        flat = ", and flat groups still carry a gradient" if grpo.scale != "group_std" else ""
        yield f"Without a baseline every rewarded completion is pushed up{flat}."
    if grpo.scale == "none" and grpo.std != "sample":
        yield f"std={grpo.std} has no effect: with scale=none nothing is divided by a standard deviation."


def _sft_remarks(config: "RunConfig") -> Iterator[str]:
    start = SftConfig()
    if config.sft.steps == 0:
        idle = [name for name in SftConfig.model_fields if getattr(config.sft, name) != getattr(start, name)]
        if idle:
            yield f"sft.{', sft.'.join(idle)} without effect: with sft.steps=0 there is no SFT."
    in_use = config.kl.beta > 0 or config.kl.measure or config.entropy.bonus > 0 or config.entropy.target is not None
    if config.grpo.steps == 0 and in_use:
        what = "the run is SFT alone, which has neither term" if config.sft.steps else "nothing is trained"
        yield f"kl and entropy have no effect: with grpo.steps=0 {what}."


def _length_remarks(config: "RunConfig") -> Iterator[str]:
    buffer, completions = config.truncation.overlong_buffer, config.truncation.completions
    if buffer is not None and completions != "keep":
        yield (
            f"overlong_penalty reaches no cut completion: with truncation.completions={completions} "
            "their tokens are left out of the loss."
        )
    if buffer is not None and config.grpo.learn_from == "correct":
        yield "overlong_penalty changes no gradient: under learn_from=correct every advantage is 1."


def _vllm_remarks(config: "RunConfig") -> Iterator[str]:
    if config.rollout.engine != "vllm":
        start = VllmConfig()
        idle = [name for name in VllmConfig.model_fields if getattr(config.vllm, name) != getattr(start, name)]
        if idle:
            yield f"vllm.{', vllm.'.join(idle)} without effect: rollout.engine={config.rollout.engine}."
    elif config.rollout.min_tokens:
        yield (
            f"min_tokens={config.rollout.min_tokens}: vLLM reports the log-probs of these tokens without the end "
            "tokens that it forbids there, so sampler and trainer differ a little."
        )


def _reward_remarks(config: "RunConfig") -> Iterator[str]:
    reward, start = config.reward, RewardConfig()
    if reward.placebo != "none":
        yield (
            f"placebo={reward.placebo}: the reward says nothing of the answer. What a run gains under it is no "
            "effect of right answers; a gain in the accuracy under a real reward counts from there."
        )
    if reward.placebo != "random" and reward.placebo_rate != start.placebo_rate:
        yield f"placebo_rate={reward.placebo_rate:g} has no effect with placebo={reward.placebo}."
    if reward.repetition == 0 and reward.repetition_ngram != start.repetition_ngram:
        yield f"repetition_ngram={reward.repetition_ngram} has no effect with repetition=0."
    idle = [
        name
        for name in ("answer", "format", "length", "repetition")
        if getattr(reward, name) != getattr(start, name) and config.grpo.learn_from == "correct"
    ]
    if idle:
        yield f"reward.{', reward.'.join(idle)} without effect: under learn_from=correct every advantage is 1."


def _task_remarks(config: "RunConfig") -> Iterator[str]:
    task, start = config.task, TaskConfig()
    idle = [
        f"task.{field}"
        for field, readers in READ_BY.items()
        if task.name not in readers and getattr(task, field) != getattr(start, field)
    ]
    if idle:
        yield f"{', '.join(idle)} without effect: task.name={task.name} does not read it."
    if task.name == "finqa" and task.context != "retrieved" and task.context_rows != start.context_rows:
        yield f"context_rows={task.context_rows} has no effect with context={task.context}: nothing is retrieved."
    if task.name in OF_DATA and task.validation_from == "test" and config.total_steps:
        yield (
            "validation_from=test: checkpoints are chosen and runs are stopped by the test problems, so their accuracy "
            "is no longer that of unseen problems."
        )
    if config.evaluation.split == "test" and config.total_steps:
        yield (
            "evaluation.split=test: checkpoints are chosen and runs are stopped by the test problems, so their "
            "accuracy is no longer that of unseen problems."
        )
    if task.name in OF_DATA and task.overlap == "keep" and config.total_steps:
        yield "overlap=keep: the policy may be trained on problems that it is then tested on."
    reward = reward_name(config.prompt, task)
    if task.name == "finqa" and reward != "finqa":
        yield (
            f"reward={reward} compares exactly, and FinQA's gold answers are unrounded (0.56197 for 56.2%): most right "
            "answers earn nothing. The reward finqa allows for that: prompt.name=answer_line."
        )
    own = own_reward(config.prompt, task)
    chosen = config.prompt.reward
    if chosen is not None and not chosen.startswith("own:") and own is not None and chosen != own:
        source = f"task.name={task.name}" if task.name == "reasoning_gym" else f"prompt.name={config.prompt.name}"
        yield (
            f"prompt.reward={chosen} is not the reward of {source}, which is {own}: an answer in the "
            "form that the prompt asks for may go unread."
        )


def _kl_remarks(config: "RunConfig") -> Iterator[str]:
    kl, start = config.kl, KlConfig()
    if not config.has_reference:
        idle = [
            name
            for name in ("estimator", "placement", "gain", "reference", "ema_decay", "copy_every")
            if getattr(kl, name) != getattr(start, name)
        ]
        if idle:
            yield f"kl.{', kl.'.join(idle)} without effect: with beta=0 there is no KL term."
        return
    if kl.beta > 0 and kl.placement == "loss" and kl.estimator == "k1":
        yield (
            "k1 as a term of the loss pulls nowhere: its gradient averages to 0 over the policy's own samples. "
            "Use estimator=k2 or k3, or placement=reward."
        )
    if kl.beta > 0 and kl.placement == "reward" and kl.estimator != "k1":
        yield (
            f"estimator={kl.estimator} in the reward: the gradient of a reward comes from its value alone, and "
            "only k1 gives that of the KL divergence itself."
        )
    if kl.beta > 0 and kl.placement == "loss":
        yield "The KL term also acts on flat groups, whose gradient is then that of the KL term alone."


def _sampler_remarks(config: "RunConfig") -> Iterator[str]:
    rollout = config.rollout
    cuts = [
        f"{name}={value}"
        for name, value, idle in (
            ("top_p", f"{rollout.top_p:g}", 1.0),
            ("top_k", str(rollout.top_k), None),
            ("min_p", f"{rollout.min_p:g}", 0.0),
        )
        if getattr(rollout, name) != idle
    ]
    if cuts:
        yield (
            f"{', '.join(cuts)}: the sampler draws from a cut and renormalised distribution, so the ratio of policy to "
            "sampler is biased (below 1 for every token drawn), and no correction brings back what was cut."
        )
    if rollout.repetition_penalty != 1:
        yield (
            f"repetition_penalty={rollout.repetition_penalty:g}: the sampler draws from another distribution than the "
            "policy's, so the ratio of policy to sampler is biased."
        )
    if config.cuts_distribution and config.grpo.importance_correction == "none":
        yield (
            "The update takes these completions for the policy's own; "
            "grpo.importance_correction=token_truncate corrects that in part."
        )
