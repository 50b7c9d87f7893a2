import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.rewards import extraction
from engine.rewards.format import keeps_r1_zero_tolerant_format


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


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Half of 84.\n#### 42", "42"),
        ("####42", "42"),
        ("#### 42\r\n", "42"),
        ("#### 41\n#### 42", "42"),
        ("#### 42\nSo there.", "42"),
        ("####\n\n42\n7", "42"),
        ("#### 42 ####", "42"),
        ("#### 42\n####", "42"),
        ("##### 42", "42"),
        ("#### 6 boxes of 7", "6 boxes of 7"),
        ("####", ""),
        ("### 42", None),
        ("", None),
    ],
)
def test_the_line_after_the_last_four_hashes_is_read(text, answer):
    assert extraction.hash_line(text) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Answer: 12.5%", "12.5%"),
        ("From the table.\n**Answer:** 12.5%", "12.5%"),
        ("**Answer**: 12.5%", "12.5%"),
        ("answer: 3\nFinal Answer: 4\nDone.", "4"),
        ("Answer:\n42", "42"),
        ("The answer is 42.", "42."),
        ("Answer: 3, I think. <answer>4</answer>", "4"),
        ("The answers: 3", None),
        ("42", None),
    ],
)
def test_a_tag_comes_before_a_line_and_a_line_before_a_sentence(text, answer):
    assert extraction.answer_line(text) == answer


@given(st.text(alphabet="ab{}\\<>/ \n") | st.text())
def test_extraction_reads_any_text_and_returns_a_part_of_it(text):
    for extract in (extraction.answer_tag, extraction.boxed, extraction.hash_line, extraction.answer_line):
        answer = extract(text)
        assert answer is None or answer in text


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    ["<answer>", "</answer>", "#", "#### ", "answer: ", "answer is ", "\\boxed{", "{", "}", "<answer></answer>", "\\"],
)
def test_a_long_text_of_tags_is_read_in_one_pass(piece):
    text = piece * 100_000
    extraction.answer_tag(text)
    extraction.boxed(text)
    extraction.hash_line(text)
    extraction.answer_line(text)
    keeps_r1_zero_tolerant_format("</think><answer>" + text)
    keeps_r1_zero_tolerant_format("</think><answer>" * 100_000)
