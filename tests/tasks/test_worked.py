import pytest

from engine.rewards.verifiers import REWARDS
from engine.tasks.prompts import load_prompt
from engine.tasks.worked import SOLUTIONS, Work, boxed, tagged, worked


def test_steps_are_worked_from_left_to_right():
    assert worked((7, 12, 3), ("+", "-")) == Work(" 7+12=19; 19-3=16", 16)


def test_products_come_before_sums_and_differences():
    assert worked((2, 3, 4), ("+", "*")) == Work(" 3*4=12; 2+12=14", 14)
    assert worked((9, 2, 3, 2, 1), ("-", "*", "+", "*")) == Work(" 2*3=6; 2*1=2; 9-6=3; 3+2=5", 5)


def test_a_slip_is_carried_through():
    assert worked((7, 12, 3), ("+", "-"), slip_at=0, slip=1) == Work(" 7+12=20; 20-3=17", 17)


def test_each_form_has_the_steps_and_the_answer():
    work = worked((7, 12, 3), ("+", "-"))
    assert tagged(work) == " 7+12=19; 19-3=16 </think> <answer> 16 </answer>"
    assert boxed(work) == " 7+12=19; 19-3=16. So \\boxed{16}"


@pytest.mark.parametrize("name", SOLUTIONS)
def test_the_reward_of_a_prompt_takes_its_solution_for_right(name):
    reward = REWARDS[load_prompt(name).reward]
    judged = reward(SOLUTIONS[name](worked((7, 12, 3), ("+", "-"))), "16")
    assert (judged.value, judged.verdict) == (1.0, "correct")
