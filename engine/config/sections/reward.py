"""What a completion earns."""

from typing import Literal

from engine.config.sections.section import Section, about

Placebo = Literal["none", "random", "always_one", "format_only"]


class RewardConfig(Section):
    """What a completion earns: the prompt's reward or a placebo in its place, and further parts beside it.

    The sum is `answer` · reward + `format` · form kept − `length` · tokens / max_tokens − `repetition` · share of
    repeated n-grams, and the overlong penalty of the section `truncation`.
    """

    placebo: Placebo = about(
        "none",
        "Paid in place of the prompt's reward: 1 by chance, always 1, or 1 for the form alone. Verdicts stay those of "
        "the prompt's reward, and so does the accuracy of evaluations.",
    )
    placebo_rate: float = about(
        0.5, "Share of completions that the random placebo pays, drawn apart from all else.", ge=0.0, le=1.0
    )
    answer: float = about(1.0, "Weight of the prompt's reward, or of the placebo in its place.", ge=0.0, le=100.0)
    format: float = about(
        0.0, "Weight of the form: added for a completion in the form that the prompt asks for.", ge=0.0, le=100.0
    )
    length: float = about(
        0.0, "Cost of a completion of max_tokens; a shorter one costs in proportion.", ge=0.0, le=100.0
    )
    repetition: float = about(
        0.0,
        "Cost of a completion that only repeats itself: times the share of its n-grams seen before.",
        ge=0.0,
        le=100.0,
    )
    repetition_ngram: int = about(4, "Length of the n-grams whose repetition costs.", unit="tokens", ge=1, le=64)
