import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rewards import extraction


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (" 7+12=19 </think> <answer> 19 </answer>", "19"),
        ("<answer>\n42\n</answer>", "42"),
        ("<answer>1</answer> no, <answer>2</answer>", "2"),
        ("<answer>1</answer> and <answer>2", "1"),
        ("<answer> a <answer>2</answer>", "2"),
        ("<answer>3</answer></answer>", "3"),
        ("<answer></answer>", ""),
        ("<answer>3", None),
        ("3</answer>", None),
        ("</answer>3<answer>", None),
        ("<Answer>3</Answer>", None),
        ("", None),
    ],
)
def test_the_last_complete_answer_tag_is_read(text, answer):
    assert extraction.answer_tag(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"So \boxed{19}", "19"),
        (r"\boxed{1} no, \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\boxed{5}}", "5"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{1} and \boxed{2", "1"),
        (r"\boxed{1 and \boxed{2}", "2"),
        (r"a } b \boxed{3}", "3"),
        (r"a { b \boxed{3}", "3"),
        (r"\boxed {4}", "4"),
        (r"\boxed{}", ""),
        (r"the word \boxed alone", None),
        (r"\boxed{3\}", None),
        (r"\\boxed", None),
        ("boxed{3}", None),
        ("", None),
    ],
)
def test_the_complete_box_that_starts_last_is_read(text, answer):
    assert extraction.boxed(text) == answer


@given(st.text(alphabet="ab{}\\<>/ \n") | st.text())
def test_extraction_reads_any_text_and_returns_a_part_of_it(text):
    for extract in (extraction.answer_tag, extraction.boxed):
        answer = extract(text)
        assert answer is None or answer in text


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["<answer>", "</answer>", "\\boxed{", "{", "}", "<answer></answer>", "\\"])
def test_a_long_text_of_tags_is_read_in_one_pass(piece):
    text = piece * 100_000
    extraction.answer_tag(text)
    extraction.boxed(text)
