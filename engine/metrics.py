"""The one list of metrics: the name it is stored under, its title, unit and definition.

Names are TRL's where TRL has one. In a name `<split>` stands for validation or test, `<k>` for a number of answers.
`docs/metrics.md` is written from this list, and a test keeps them equal.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `unit` is "" for a plain number; a "share" lies between 0 and 1."""

    name: str
    title: str
    unit: str
    sentence: str


def _table(*rows: tuple[str, str, str, str]) -> dict[str, Metric]:
    return {name: Metric(name, title, unit, sentence) for name, title, unit, sentence in rows}


METRICS: dict[str, Metric] = _table(
    ("reward", "Reward", "", "Mean reward of the step's graded training completions."),
    ("reward_std", "Reward std", "", "Mean over groups of the standard deviation of the rewards in a group."),
    ("reward_std/batch", "Reward std, batch", "", "Standard deviation of all graded rewards of the rollout batch."),
    ("rewards/answer/mean", "Answer reward", "share", "Share of training completions whose answer is right."),
    (
        "rewards/answer/std",
        "Answer reward std",
        "",
        "Population std of `answer` over graded completions.",
    ),
    ("rewards/format/mean", "Format reward", "share", "Share of training completions in the format asked for."),
    (
        "rewards/format/std",
        "Format reward std",
        "",
        "Population std of `format` over graded completions.",
    ),
    (
        "rewards/placebo/mean",
        "Placebo",
        "share",
        "Share of graded training completions that the placebo paid, in place of the prompt's reward.",
    ),
    ("rewards/placebo/std", "Placebo std", "", "Population std of what the placebo paid, 0 or 1 each."),
    (
        "rewards/length/mean",
        "Cost of length",
        "",
        "Mean of what `reward.length` took off the rewards; 0 or less.",
    ),
    ("rewards/length/std", "Cost of length std", "", "Population std of what `reward.length` took off."),
    (
        "rewards/repetition/mean",
        "Cost of repetition",
        "",
        "Mean of what `reward.repetition` took off the rewards for repeated n-grams; 0 or less.",
    ),
    (
        "rewards/repetition/std",
        "Cost of repetition std",
        "",
        "Population std of what `reward.repetition` took off.",
    ),
    (
        "rewards/overlong/mean",
        "Overlong penalty",
        "",
        "Mean of what the soft overlong penalty took off the rewards; 0 or less.",
    ),
    ("rewards/overlong/std", "Overlong penalty std", "", "Population std of what the penalty took off."),
    ("rewards/not_graded", "Not graded", "share", "Share of training completions that the reward could not judge."),
    (
        "rewards/unreadable",
        "Unreadable",
        "share",
        "Share of training completions without an answer that can be read; they earn nothing, as wrong ones do.",
    ),
    ("frac_reward_zero_std", "Flat groups", "share", "Share of groups whose rewards are all equal."),
    (
        "groups/mixed",
        "Mixed groups",
        "share",
        "Share of groups whose rewards differ; only these teach under a baseline.",
    ),
    (
        "groups/all_correct",
        "All right",
        "share",
        "Share of groups with equal rewards, every completion correct.",
    ),
    ("groups/all_wrong", "All wrong", "share", "Share of groups with equal rewards, no completion correct."),
    ("groups/tied", "Tied", "share", "Share of groups with equal rewards for another reason."),
    (
        "entropy",
        "Entropy",
        "nats/token",
        "Mean entropy of the policy over its sampled tokens, before the update; in SFT over those of the responses.",
    ),
    (
        "entropy/bonus",
        "Entropy bonus",
        "",
        "Weight of the entropy in the step's objective; 0 while the entropy is above its target.",
    ),
    (
        "kl",
        "KL",
        "nats/token",
        "Mean k3 estimate of KL(policy || reference) over the sampled tokens, before the update; whatever "
        "kl.estimator is, so that runs compare.",
    ),
    (
        "kl/update",
        "KL in the update",
        "nats/token",
        "The same at the step's last optimizer step, over its tokens with a gradient: what the controller goes by.",
    ),
    ("kl/beta", "KL weight", "", "Weight of the KL term in the step; moved by the controller where there is a target."),
    ("loss", "Loss", "", "Value of the loss that was differentiated, mean over the step's optimizer steps."),
    ("grad_norm", "Gradient norm", "", "Norm of the gradient before clipping, mean over the step's optimizer steps."),
    ("learning_rate", "Learning rate", "", "Learning rate of the step's last optimizer step."),
    (
        "ratio/mean",
        "Mean ratio",
        "",
        "Mean of policy over old probability, over tokens with an advantage; 1 when on-policy.",
    ),
    ("clip_ratio/low_mean", "Clipped low", "share", "Share of tokens with a negative advantage held at 1 − clip_eps."),
    (
        "clip_ratio/high_mean",
        "Clipped high",
        "share",
        "Share of tokens with a positive advantage held at 1 + clip_eps_high; under cispo, of all weights capped.",
    ),
    (
        "clip_ratio/dual_mean",
        "Clipped dual",
        "share",
        "Share of tokens with a negative advantage held at dual_clip; not part of clip_ratio/region_mean.",
    ),
    ("clip_ratio/region_mean", "Clipped", "share", "Share of tokens that the clip holds, low and high together."),
    ("completions/mean_length", "Mean length", "tokens", "Mean completion length, the end token counted."),
    ("completions/min_length", "Shortest", "tokens", "Length of the step's shortest completion."),
    ("completions/max_length", "Longest", "tokens", "Length of the step's longest completion."),
    ("completions/clipped_ratio", "Truncated", "share", "Share of completions that the length limit cut off."),
    (
        "completions/masked_ratio",
        "Left out for length",
        "share",
        "Share of completions whose tokens are left out of the loss because they were cut off.",
    ),
    ("dynamic_sampling/draws", "Draws", "", "How often prompts were drawn for the step, P at a time."),
    (
        "dynamic_sampling/discarded",
        "Groups left out",
        "share",
        "Share of the step's groups that were sampled and not trained on: the cost of dynamic sampling.",
    ),
    (
        "dynamic_sampling/reward",
        "Reward, all drawn",
        "",
        "Mean reward of everything drawn, left out or not; `reward` is that of the groups trained on.",
    ),
    (
        "sampling/sampling_logp_difference/mean",
        "Sampler difference, mean",
        "nats",
        "Mean |policy − sampler| log-prob of the sampled tokens before the update; 0 when both agree.",
    ),
    (
        "sampling/sampling_logp_difference/max",
        "Sampler difference, max",
        "nats",
        "Largest |policy − sampler| log-prob of a sampled token before the update.",
    ),
    (
        "sampling/importance_sampling_ratio/mean",
        "Importance ratio, mean",
        "",
        "Mean of policy over sampler probability of the sampled tokens, raw: before any correction.",
    ),
    ("sampling/importance_sampling_ratio/min", "Importance ratio, min", "", "Smallest such ratio."),
    ("sampling/importance_sampling_ratio/max", "Importance ratio, max", "", "Largest such ratio."),
    (
        "sampling/importance_beyond_cap",
        "Beyond the cap",
        "share",
        "Share of tokens whose importance ratio is above importance_cap, under a sequence correction of sequences: "
        "truncated or left out where there is a correction.",
    ),
    (
        "sampling/importance_weight/mean",
        "Importance weight, mean",
        "",
        "Mean of what a correction leaves of the importance ratio, by which losses are multiplied: truncated at the "
        "cap or 0 beyond it; per token, or per sequence under a sequence correction.",
    ),
    ("sampling/importance_weight/min", "Importance weight, min", "", "Smallest such weight."),
    ("sampling/importance_weight/max", "Importance weight, max", "", "Largest such weight."),
    (
        "sampling/weight_version",
        "Weight version",
        "",
        "Optimizer steps that had changed the weights with which the step's completions were sampled.",
    ),
    (
        "num_tokens",
        "Tokens",
        "tokens",
        "Prompt and completion tokens sampled for training since the run began, and those of the examples of SFT.",
    ),
    ("updates/optimizer_steps", "Optimizer steps", "", "Optimizer steps taken in the step."),
    ("updates/skipped", "Skipped updates", "", "Optimizer steps skipped for a non-finite loss or gradient."),
    (
        "step_time",
        "Step time",
        "s",
        "Time of rollout, scoring and update; of a step that was stopped inside, what followed the resume.",
    ),
    ("time/rollout", "Rollout", "s", "Time to sample the step's completions."),
    ("time/score", "Scoring", "s", "Time to grade them and take their advantages."),
    ("time/update", "Update", "s", "Time of all forward and backward passes and optimizer steps."),
    ("time/evaluate", "Evaluation", "s", "Time of the evaluation at this step."),
    ("time/checkpoint", "Checkpoint", "s", "Time to write the checkpoint at this step."),
    ("time/write", "Hand-over to the store", "s", "Time the loop spends on handing the previous step to the store."),
    ("memory/rss", "Resident memory", "bytes", "Resident set of the run's process at the end of the step."),
    ("memory/rollout", "Rollout memory", "bytes", "Peak memory while sampling: of the GPU, else the resident set."),
    ("memory/score", "Scoring memory", "bytes", "Peak memory while grading, counted as for the rollout."),
    (
        "memory/update",
        "Update memory",
        "bytes",
        "Peak memory of forward and backward passes and optimizer steps, counted as for the rollout.",
    ),
    (
        "memory/evaluate",
        "Evaluation memory",
        "bytes",
        "Peak memory of the evaluation at this step, counted as for the rollout.",
    ),
    (
        "memory/checkpoint",
        "Checkpoint memory",
        "bytes",
        "Peak memory while the checkpoint is written, counted as for the rollout.",
    ),
    (
        "memory/write",
        "Hand-over memory",
        "bytes",
        "Peak memory while the previous step is handed to the store, counted as for the rollout.",
    ),
    (
        "device/memory_used/mean",
        "GPU memory, mean",
        "bytes",
        "Memory in use on the run's GPU, by whichever process, mean over the readings since the last step.",
    ),
    ("device/memory_used/max", "GPU memory, most", "bytes", "The largest of these readings."),
    (
        "device/utilization/mean",
        "GPU busy, mean",
        "share",
        "Share of the time in which the run's GPU computed anything at all, mean over the readings since the last "
        "step; it says nothing of how much of the GPU was at work.",
    ),
    ("device/utilization/max", "GPU busy, most", "share", "The largest of these readings."),
    (
        "eval/<split>/accuracy",
        "Accuracy",
        "share",
        "Share of the sampled answers to held-out problems that are right: pass@1.",
    ),
    ("eval/<split>/format", "Format", "share", "Share of sampled held-out answers in the format asked for."),
    ("eval/<split>/mean_length", "Length", "tokens", "Mean length of sampled held-out completions."),
    (
        "eval/<split>/not_graded",
        "Not graded",
        "share",
        "Share of sampled held-out answers that the reward could not judge; they count as not right.",
    ),
    (
        "eval/<split>/pass@<k>",
        "Pass@<k>",
        "share",
        "Chance that at least one of <k> sampled answers to a held-out problem is right, mean over the problems.",
    ),
    (
        "eval/<split>/majority@<k>",
        "Majority@<k>",
        "share",
        "Share of held-out problems whose most frequent answer among <k> sampled ones is right.",
    ),
    (
        "eval/<split>/greedy_accuracy",
        "Greedy accuracy",
        "share",
        "Share of held-out problems right under greedy decoding.",
    ),
    (
        "eval/<split>/greedy_format",
        "Greedy format",
        "share",
        "Share of greedy held-out answers in the format asked for.",
    ),
    ("eval/<split>/greedy_mean_length", "Greedy length", "tokens", "Mean length of greedy held-out completions."),
    (
        "eval/<split>/greedy_not_graded",
        "Greedy not graded",
        "share",
        "Share of greedy held-out answers that the reward could not judge; they count as not right.",
    ),
)

_SPLIT = re.compile(r"^eval/(validation|test)/")
_AT_K = re.compile(r"@(\d+)$")


def family_of(name: str) -> str:
    """Return the name under which the list has a metric: `eval/<split>/pass@<k>` for `eval/test/pass@8`."""
    return _AT_K.sub("@<k>", _SPLIT.sub("eval/<split>/", name))


def metric_of(name: str) -> Metric:
    """Return the definition of a metric; one that is not in the list stands for itself, without a unit."""
    family = METRICS.get(family_of(name))
    if family is None:
        return Metric(name, name, "", "This metric has no definition in this version.")
    found = _AT_K.search(name)
    k = found[1] if found else ""
    return Metric(name, family.title.replace("<k>", k), family.unit, family.sentence.replace("<k>", k))
