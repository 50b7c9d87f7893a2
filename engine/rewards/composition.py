"""What a completion earns in training: the prompt's reward or a placebo, weighed, with what is added and taken off."""

from collections.abc import Sequence
from dataclasses import replace

from engine.config.sections import RewardConfig
from engine.rewards.placebo import placebo_payments
from engine.rewards.repetition import repeated_share
from engine.types import Completion, Group, Reward


def compose(
    groups: Sequence[Group], rewards: Sequence[Sequence[Reward]], settings: RewardConfig, *, max_tokens: int, seed: int
) -> tuple[tuple[Reward, ...], ...]:
    """Return `rewards` (P, G) with the values that the section `reward` gives them; `seed` is that of the placebo.

    value = answer · R + format · (form kept) − length · tokens / max_tokens − repetition · (share of repeated n-grams),
    R being the prompt's reward or the placebo in its place. Parts stay as they are; `placebo` is what it paid, `length`
    and `repetition` what they add to the value (≤ 0), each only where it is in use. Verdict, answer and reason stay
    those of the prompt's reward. So does a completion that was not graded: it has no value under a placebo either,
    though none needs a verdict, because a value beside "not_graded" would say that it was judged. One that lacks the
    part `format` where that is paid becomes not graded.

    Raises ValueError where `rewards` do not have one reward for each completion of `groups`.
    """
    paid = placebo_payments(settings.placebo, rewards, rate=settings.placebo_rate, seed=seed)
    return tuple(
        tuple(_composed(*each, settings, max_tokens) for each in zip(group.completions, members, payments, strict=True))
        for group, members, payments in zip(groups, rewards, paid, strict=True)
    )


def _composed(
    completion: Completion, reward: Reward, paid: float | None, settings: RewardConfig, max_tokens: int
) -> Reward:
    if reward.value is None:
        return reward
    if "format" not in reward.parts and (payer := _payer_of_form(settings)):
        reason = f"the reward gave no part `format`, which {payer} pays; give it in every case, or do without"
        return replace(reward, value=None, verdict="not_graded", reason=reason)
    parts = dict(reward.parts)
    if paid is not None:
        parts["placebo"] = paid
    value = settings.answer * (reward.value if paid is None else paid)
    if settings.format:
        value += settings.format * parts["format"]
    if settings.length:
        parts["length"] = -settings.length * len(completion.token_ids) / max_tokens
        value += parts["length"]
    if settings.repetition:
        share = repeated_share(completion.token_ids, settings.repetition_ngram)
        parts["repetition"] = 0.0 - settings.repetition * share  # never −0.0
        value += parts["repetition"]
    return replace(reward, value=value, parts=parts)


def _payer_of_form(settings: RewardConfig) -> str:
    if settings.placebo == "format_only":
        return "reward.placebo=format_only"
    return f"reward.format={settings.format:g}" if settings.format else ""
