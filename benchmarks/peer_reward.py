"""The rewards that TRL's side pays, in a few lines and without this package.

They say of an integer what ours say (engine/rewards/verifiers.py); ours read a good deal more, such as fractions and
expressions. How often the two agree is checked on our own completions whenever a whole run is measured.
"""

import re

_ANSWER = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>", re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
# What may stand around a number that is the whole of an answer.
_AROUND = re.compile(r"(?:.*=)?\s*\$?([+-]?[0-9]{1,18})(?:\.0*)?\s*", re.DOTALL)


def pays(rule: str, text: str, gold: str) -> float:
    """Return 1.0 for a right answer in the form that the rule asks for, else 0.0.

    `answer_tag`: the last complete answer tag holds the number, behind `</think> <answer>`. `plain`: the whole text is
    the number, or an equation that ends in it.

    Raises:
        ValueError: if there is no such rule.
    """
    if rule == "answer_tag":
        found = _ANSWER.findall(text)
        answer = _INTEGER.fullmatch(found[-1].strip()) if found and "</think> <answer>" in text else None
        return float(answer is not None and int(answer.group()) == int(gold))
    if rule == "plain":
        answer = _AROUND.fullmatch(text)
        return float(answer is not None and int(answer.group(1)) == int(gold))
    raise ValueError(f"rule={rule!r} is none of answer_tag and plain; add it to benchmarks/peer_reward.py")
