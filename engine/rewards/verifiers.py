"""The rewards by name. Each judges one completion against the gold answer.

All share one rule, that of Stanford CS336 assignment 5: `value` is 1.0 where the format is kept and the
answer is right, else 0.0. The verdict goes with the value: "correct" exactly where it is 1.0; "unreadable"
where no answer could be read; "not_graded" with value None where the grader was stopped; else "wrong", also for
a right answer in a wrong form. `parts` keeps the two apart: `format` and `answer`, each 0.0 or 1.0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.rewards import format as forms
from engine.rewards.grading import Answer, grade
from engine.rewards.judging import FORMATS
from engine.tasks.gym_reward import reasoning_gym
from engine.types import Reward

RewardFn = Callable[[str, str], Reward]


@dataclass(frozen=True, slots=True)
class Verifier:
    """A reward that compares an answer with gold.

    `format` says where the answer is and how it is compared (docs/grading.md), `keeps_form` what else the prompt asks
    of the text; `broken` is said of a right answer in a wrong form.
    """

    format: str
    keeps_form: Callable[[str], bool]
    broken: str

    def __call__(self, completion: str, gold: str) -> Reward:
        """Return the reward of one completion.

        Raises:
            RewardError: if `gold` cannot be compared.
        """
        (answer,) = grade([(completion, gold)], self.format)
        if answer.gold_fault is not None:
            raise answer.gold_fault
        return self._reward(completion, answer)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Reward]:
        """Return the rewards of pairs of completion and gold, not graded where gold cannot be compared."""
        return [reward for reward, _ in self.timed(pairs)]

    def timed(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[Reward, float]]:
        """Return the same rewards, each with the seconds that its comparison took."""
        answers = grade(pairs, self.format)
        judged = zip(pairs, answers, strict=True)
        return [(self._reward(completion, answer), answer.seconds) for (completion, _), answer in judged]

    def _reward(self, completion: str, answer: Answer) -> Reward:
        if answer.verdict == "not_graded":
            return Reward(None, {}, answer.text, "not_graded", answer.reason)
        form_kept, right = self.keeps_form(completion), answer.verdict == "correct"
        parts = {"format": float(form_kept), "answer": float(right)}
        if right and not form_kept:
            return Reward(0.0, parts, answer.text, "wrong", f"right answer, but {self.broken}")
        return Reward(float(right), parts, answer.text, answer.verdict, answer.reason)


# The last complete `<answer>…</answer>`, with the `</think> <answer>` form of `r1_zero`, strict as the studies have it.
answer_tag = Verifier("answer_tag", forms.keeps_r1_zero_format, "no '</think> <answer>'")
# The same with any white space, or none, between the two tags.
answer_tag_tolerant = Verifier("answer_tag", forms.keeps_r1_zero_tolerant_format, "no '</think>' before '<answer>'")
# The last complete `\boxed{…}`; the box is all the form there is.
boxed = Verifier("boxed", forms.holds_box, FORMATS["boxed"].missing)
# The line after the last `####`.
gsm8k = Verifier("gsm8k", forms.holds_hash_line, FORMATS["gsm8k"].missing)
# What follows "Answer:", compared as figures in accounts are.
finqa = Verifier("finqa", forms.holds_answer_line, FORMATS["finqa"].missing)

# A new reward is a function (completion, gold) -> Reward and a line here.
REWARDS: dict[str, RewardFn] = {
    "answer_tag": answer_tag,
    "answer_tag_tolerant": answer_tag_tolerant,
    "boxed": boxed,
    "gsm8k": gsm8k,
    "finqa": finqa,
    "reasoning_gym": reasoning_gym,
}
