"""The reward of reasoning-gym's problems: the last answer tag, judged by the generator's own verifier."""

from engine.errors import TaskError
from engine.tasks.reasoning_gym import gold_answer, score_answer
from engine.types import Reward


def reasoning_gym(completion: str, gold: str) -> Reward:
    """Judge the text of the last complete `<answer>…</answer>`; `value` is the verifier's score, 0 to 1.

    "correct" where the score is 1, "unreadable" where there is no tag or the verifier cannot read what is in it (value
    0), else "wrong", also for the part of a score that some verifiers give. `parts` has `format`, 1.0 where there is a
    tag, and `answer`, the score.

    Raises TaskError where `gold` is no problem's of reasoning_gym, or the package is not installed.
    """
    from reasoning_gym.utils import extract_answer

    expected = gold_answer(gold)
    answer = extract_answer(completion)
    if answer is None:
        return Reward(0.0, {"format": 0.0, "answer": 0.0}, None, "unreadable", "no complete <answer> tag")
    try:
        score = score_answer(answer, gold)
    except TaskError:
        raise
    except Exception as error:  # a verifier raises whatever its reading of a strange answer raises
        reason = f"the verifier cannot read the answer ({type(error).__name__}: {error})"
        return Reward(0.0, {"format": 1.0, "answer": 0.0}, answer, "unreadable", reason)
    parts = {"format": 1.0, "answer": score}
    if score == 1.0:
        return Reward(score, parts, answer, "correct", "the verifier gives 1")
    beside = f", whose own answer is {expected}" if expected is not None else ""
    return Reward(score, parts, answer, "wrong", f"the verifier gives {score:g}{beside}")
