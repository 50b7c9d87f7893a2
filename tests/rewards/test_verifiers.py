import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import RewardError
from engine.rewards.verifiers import REWARDS, Verifier, answer_tag, answer_tag_tolerant, boxed, finqa, gsm8k, plain

VERIFIERS = {name: reward_fn for name, reward_fn in REWARDS.items() if isinstance(reward_fn, Verifier)}


def test_a_right_answer_in_the_right_form_is_worth_one():
    reward = answer_tag(" 7+12=19; 19-3=16 </think> <answer> 16 </answer>", "16")
    assert reward.value == 1.0
    assert reward.parts == {"format": 1.0, "answer": 1.0}
    assert (reward.answer, reward.verdict, reward.reason) == ("16", "correct", "equal to 16")


def test_a_wrong_answer_in_the_right_form_is_worth_nothing():
    reward = answer_tag(" </think> <answer> 15 </answer>", "16")
    assert reward.value == 0.0
    assert reward.parts == {"format": 1.0, "answer": 0.0}
    assert (reward.answer, reward.verdict, reward.reason) == ("15", "wrong", "not equal to 16")


def test_a_right_answer_in_a_wrong_form_is_worth_nothing_and_says_why():
    reward = answer_tag(" 7+12=19 <answer> 19 </answer>", "19")
    assert reward.value == 0.0
    assert reward.parts == {"format": 0.0, "answer": 1.0}
    assert (reward.answer, reward.verdict) == ("19", "wrong")
    assert reward.reason == "right answer, but no '</think> <answer>'"


@pytest.mark.parametrize(
    ("text", "answer", "reason"),
    [
        (" 7+12=19 </think> 19", None, "no complete <answer> tag"),
        (" </think> <answer> 19 or 20 </answer>", "19 or 20", "the answer is not one number"),
        (" </think> <answer> 7+12 </answer>", "7+12", "the answer is not one number"),
        (" </think> <answer> </answer>", "", "empty answer"),
    ],
)
def test_an_answer_that_cannot_be_read_is_unreadable_and_not_wrong(text, answer, reason):
    reward = answer_tag(text, "19")
    assert (reward.value, reward.answer, reward.verdict, reward.reason) == (0.0, answer, "unreadable", reason)
    assert reward.parts["answer"] == 0.0


def test_boxed_reads_the_last_box():
    assert boxed(r" 7+12=19. So \boxed{19}", "19").value == 1.0
    assert boxed(r" \boxed{19} no, \boxed{20}", "19").verdict == "wrong"
    unboxed = boxed(" The answer is 19.", "19")
    assert (unboxed.value, unboxed.verdict, unboxed.parts) == (0.0, "unreadable", {"format": 0.0, "answer": 0.0})


def test_numbers_are_compared_and_not_their_spelling():
    assert answer_tag("</think> <answer> 1,365.0 </answer>", "1365").value == 1.0
    assert boxed(r"\boxed{\frac{1}{4}}", "0.25").value == 1.0


@pytest.mark.parametrize("reward_fn", VERIFIERS.values(), ids=VERIFIERS)
def test_a_gold_answer_that_is_not_a_number_is_an_error_and_never_a_reward(reward_fn):
    with pytest.raises(RewardError, match=r"^gold: 'n/a' is not an answer"):
        reward_fn("</think> <answer> n/a </answer> \\boxed{n/a}\n#### n/a", "n/a")


@pytest.mark.parametrize("reward_fn", VERIFIERS.values(), ids=VERIFIERS)
@given(text=st.text(alphabet="<>/answer 16\\boxed{}") | st.text())
def test_value_verdict_and_parts_agree_on_any_text(reward_fn, text):
    reward = reward_fn(text, "16")
    assert reward.value == reward.parts["format"] * reward.parts["answer"]
    assert (reward.verdict == "correct") == (reward.value == 1.0)
    assert reward.reason


def test_each_verifier_reads_the_answer_where_its_prompt_has_it():
    assert gsm8k("6*7=<<6*7=42>>42\n#### 42", "so it is\n#### 42").value == 1.0
    assert gsm8k("It is 42.", "42").reason == "no line with ####"
    assert finqa("Answer: 12.5%", "0.125").value == 1.0
    assert finqa("It is 12.5%", "0.125").verdict == "unreadable"


def test_plain_takes_the_whole_completion_for_the_answer():
    reward = plain(" 7\n", "7")
    assert (reward.value, reward.answer, reward.parts) == (1.0, "7", {"format": 1.0, "answer": 1.0})
    reward = plain("Let us see: 3 + 4 = 7, I think", "7")
    assert (reward.value, reward.verdict, reward.parts) == (0.0, "unreadable", {"format": 1.0, "answer": 0.0})
    reward = plain(" \n", "7")
    assert (reward.answer, reward.verdict, reward.reason) == (None, "unreadable", "an empty completion")
    assert reward.parts == {"format": 0.0, "answer": 0.0}


def test_the_tolerant_form_takes_a_line_break_between_the_tags_and_the_strict_one_does_not():
    text = "Seven sixes.</think>\n<answer>42</answer>"
    assert (answer_tag(text, "42").value, answer_tag_tolerant(text, "42").value) == (0.0, 1.0)
    assert answer_tag_tolerant("Seven sixes. <answer>42</answer>", "42").reason == (
        "right answer, but no '</think>' before '<answer>'"
    )


def test_expressions_are_compared_as_well():
    assert boxed(r"\boxed{\sqrt{12}}", r"2\sqrt{3}").value == 1.0
    assert boxed(r"\boxed{\sqrt{12}}", r"3\sqrt{3}").verdict == "wrong"


def test_a_step_of_plain_numbers_starts_no_process(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("engine.rewards.grading.shared_pool", lambda: pytest.fail("a grader process was asked for"))
    pairs = [(f" 7+12=19; {k}</think> <answer> {k} </answer>", "16") for k in range(128)]
    assert sum(reward.value or 0 for reward in answer_tag.score(pairs)) == 1.0
