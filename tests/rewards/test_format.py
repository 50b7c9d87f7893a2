import pytest

from engine.rewards.format import holds_box, keeps_r1_zero_format


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" 1+1=2 </think> <answer> 2 </answer>", True),
        (" </think> <answer></answer>", True),
        (" 1+1=2 </think>\n<answer> 2 </answer>", False),
        (" 1+1=2 </think><answer> 2 </answer>", False),
        (" 1+1=2 <answer> 2 </answer>", False),
        (" 1+1=2 </think> <answer> 2", False),
        (" <answer> 2 </answer> </think>", False),
        ("", False),
    ],
)
def test_the_r1_zero_format_is_one_space_between_the_tags_and_a_closed_answer(text, kept):
    assert keeps_r1_zero_format(text) is kept


def test_a_box_counts_only_when_it_is_closed():
    assert holds_box(r"So \boxed{2}")
    assert holds_box(r"\boxed{}")
    assert not holds_box(r"So \boxed{2")
