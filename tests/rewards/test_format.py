import pytest

from engine.rewards.format import (
    holds_answer_line,
    holds_box,
    holds_hash_line,
    keeps_r1_zero_format,
    keeps_r1_zero_tolerant_format,
)


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


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" 1+1=2 </think> <answer> 2 </answer>", True),
        (" 1+1=2 </think>\n\n<answer> 2 </answer>", True),
        (" 1+1=2 </think><answer> 2 </answer>", True),
        (" 1+1=2 <answer> 2 </answer>", False),
        (" 1+1=2 </think> so <answer> 2 </answer>", False),
        (" 1+1=2 </think> <answer> 2", False),
        (" <answer> 2 </answer> </think>", False),
        (" </think> <answer> <answer> 2 </answer>", False),
        ("", False),
    ],
)
def test_the_tolerant_form_is_any_white_space_between_the_tags_and_a_closed_answer(text, kept):
    assert keeps_r1_zero_tolerant_format(text) is kept


def test_a_marked_line_counts_where_the_prompt_asks_for_one():
    assert holds_hash_line("#### 2")
    assert not holds_hash_line("### 2")
    assert holds_answer_line("Answer: 2")
    assert not holds_answer_line("2")
