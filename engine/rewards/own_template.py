"""A reward of your own. `prompt.reward: own:NAME` in a config uses it, NAME being this file's name without .py.

Test it on completions of a run before you train with it:  grpo-lab reward test NAME
"""

import re

from engine.types import Problem, Reward


def reward(completion: str, gold: str, problem: Problem) -> Reward:
    """Return what a completion earns.

    completion: what the model has written, behind the prompt
    gold:       the gold answer; problem.gold is the same
    problem:    problem_id, question, gold, split

    A Reward has
      value    what it is worth, any finite number; None exactly where the verdict is "not_graded"
      parts    named numbers for the charts; give `format` (0 or 1) if reward.format or placebo=format_only shall see it
      answer   the answer as it was read, None where there was none
      verdict  "correct", "wrong", "unreadable" (no answer) or "not_graded" (left out); accuracy counts "correct"
      reason   one sentence for whoever asks why

    An exception costs this one completion, which is then not graded; its message and line are kept. A call has 5 s.
    """
    numbers = re.findall(r"-?\d+(?:\.\d+)?", completion.replace(",", ""))
    form_kept = completion.rstrip().endswith("</answer>")
    if not numbers:
        return Reward(0.0, {"format": float(form_kept), "answer": 0.0}, None, "unreadable", "no number in it")
    right = float(numbers[-1]) == float(gold)
    return Reward(
        value=float(right),
        parts={"format": float(form_kept), "answer": float(right)},
        answer=numbers[-1],
        verdict="correct" if right else "wrong",
        reason=f"the last number {'equals' if right else 'differs from'} {problem.gold}",
    )
