import pytest

from benchmarks.peer_reward import pays
from engine.rewards.choice import reward_named

TAGGED = (
    "so 16 </think> <answer> 16 </answer>",
    "so 16 </think> <answer>+16</answer>",
    "so 17 </think> <answer> 17 </answer>",
    "so 16 </think>\n<answer> 16 </answer>",
    "<answer> 16 </answer>",
    "</think> <answer> 1 </answer> <answer> 16 </answer>",
    "</think> <answer> 16",
    "</think> <answer> </answer>",
    "",
)
PLAIN = ("16", " 16\n", "16.", "017", "+16", "7 + 9 = 16", "7 + 9 = 17", "16 = 7", "1 6", "sixty", "", "7 + 9")


@pytest.mark.parametrize(
    ("rule", "text"),
    [("answer_tag", text) for text in TAGGED] + [("plain", text) for text in PLAIN],
)
def test_the_rule_of_the_peer_pays_what_our_reward_pays(rule, text):
    assert pays(rule, text, "16") == reward_named(rule)(text, "16").value


def test_both_pay_and_refuse_something():
    assert {pays("answer_tag", text, "16") for text in TAGGED} == {pays("plain", text, "16") for text in PLAIN}
    assert {pays("plain", text, "16") for text in PLAIN} == {0.0, 1.0}


def test_a_rule_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="rule='boxed' is none of answer_tag and plain"):
        pays("boxed", "16", "16")
