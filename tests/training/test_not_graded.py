import pytest

from engine.errors import RewardError
from engine.training.not_graded import MOST_EVENTS, NotGradedWatch
from engine.types import Reward

GRADED = Reward(1.0, {}, "3", "correct")


class Notes:
    def __init__(self):
        self.events = []

    def event(self, kind, message, *, step=None, level="info"):
        self.events.append((kind, message, step, level))


def lost(reason: str) -> Reward:
    return Reward(None, {}, None, "not_graded", reason)


@pytest.fixture
def notes() -> Notes:
    return Notes()


def test_a_share_equal_to_the_limit_goes_on_and_one_above_it_does_not(notes):
    watch = NotGradedWatch(0.5, notes)
    watch.look([lost("slow"), GRADED], step=1)
    with pytest.raises(RewardError) as caught:
        watch.look([lost("slow"), lost("slow"), lost("odd"), GRADED, GRADED], step=2)
    assert str(caught.value) == (
        "stopping.max_not_graded=0.5: 3 of the 5 completions of step 2 (60%) were not graded, 2 of them for: slow. "
        "Correct the reward (`grpo-lab reward test` tries one of your own on the completions of this step) and resume, "
        "or raise stopping.max_not_graded"
    )


def test_a_limit_of_zero_bears_no_completion_and_one_of_one_bears_all(notes):
    NotGradedWatch(0.0, notes).look([GRADED], step=1)
    NotGradedWatch(1.0, notes).look([lost("slow")], step=1)
    with pytest.raises(RewardError):
        NotGradedWatch(0.0, notes).look([lost("slow"), *[GRADED] * 99], step=1)


def test_reasons_that_differ_in_what_they_quote_are_told_once(notes):
    watch = NotGradedWatch(1.0, notes)
    watch.look([lost("KeyError: 'a' (mine.py line 3)"), GRADED], step=1)
    watch.look([lost("KeyError: 'b' (mine.py line 3)"), lost("KeyError: 'a' (mine.py line 4)")], step=2)
    assert notes.events == [
        ("not_graded", "1 of 2 completions were not graded: KeyError: 'a' (mine.py line 3)", 1, "warning"),
        ("not_graded", "1 of 2 completions were not graded: KeyError: 'a' (mine.py line 4)", 2, "warning"),
    ]


def test_events_have_a_bound_and_the_last_one_says_so(notes):
    NotGradedWatch(1.0, notes).look([lost(f"reason {n}") for n in range(100)], step=1)
    assert len(notes.events) == MOST_EVENTS
    assert notes.events[-1][1].endswith("; further reasons are not told")
    assert notes.events[0][1].endswith("reason 0")


def test_a_step_without_completions_has_nothing_to_look_at(notes):
    NotGradedWatch(0.0, notes).look((), step=1)
    assert notes.events == []
