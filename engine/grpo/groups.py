"""What kind of group the completions of one prompt make."""

from collections.abc import Sequence

from engine.types import GroupKind


def group_kind(rewards: Sequence[float | None], correct: Sequence[bool]) -> GroupKind:
    """Return the kind of a group from its rewards (None = not graded) and its verdicts.

    "mixed": the graded rewards differ, so the group teaches something. A flat group is "all_correct" or
    "all_wrong" where every completion was graded and all verdicts agree, and "tied" otherwise: equal rewards
    for right and wrong answers, or a completion that was not graded.

    Raises ValueError when the two sequences differ in length or are empty.
    """
    if not rewards or len(rewards) != len(correct):
        raise ValueError(f"{len(rewards)} rewards and {len(correct)} verdicts; a group has one of each per completion")
    graded = [reward for reward in rewards if reward is not None]
    if len(set(graded)) > 1:
        return "mixed"
    if len(graded) == len(rewards):
        if all(correct):
            return "all_correct"
        if not any(correct):
            return "all_wrong"
    return "tied"
