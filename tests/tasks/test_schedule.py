import pytest

from engine.errors import TaskError
from engine.tasks.schedule import schedule


def test_ten_problems_at_four_a_step_last_two_steps_and_leave_two_unused():
    dealt = schedule(10, 4)
    assert (dealt.steps_per_epoch, dealt.prompts_unused) == (2, 2)
    assert dealt.sentence == "10 training problems last 2 steps of 4; 2 of them, other ones each time, are unused."


def test_nothing_is_said_to_be_unused_where_the_steps_take_all():
    assert schedule(12, 4).sentence == "12 training problems last 3 steps of 4."


def test_fewer_problems_than_a_step_takes_are_refused_with_the_way_out():
    with pytest.raises(
        TaskError, match=r"^rollout\.rollout_batch_size: a step takes 4 prompts .* there are 3 .*; lower"
    ):
        schedule(3, 4)


def test_a_pass_takes_each_problem_at_most_once_and_the_next_one_has_another_order():
    dealt = schedule(10, 4)
    first = [*dealt.numbers(1, name="a"), *dealt.numbers(2, name="a")]
    second = [*dealt.numbers(3, name="a"), *dealt.numbers(4, name="a")]
    assert len(set(first)) == len(set(second)) == 8
    assert first != second


def test_every_problem_comes_up_over_a_few_passes():
    dealt = schedule(10, 4)
    assert {number for step in range(1, 21) for number in dealt.numbers(step, name="a")} == set(range(10))


def test_the_problems_of_a_step_depend_on_its_number_and_the_name_alone():
    dealt = schedule(100, 8)
    expected = dealt.numbers(37, name="a")
    for step in (1, 99, 12, 500):
        dealt.numbers(step, name="a")
    assert schedule(100, 8).numbers(37, name="a") == expected
    assert dealt.numbers(37, name="b") != expected


def test_orders_stay_what_they_are_across_versions():
    assert schedule(10, 4).numbers(1, name="gsm8k/train/0") == (1, 9, 6, 5)


def test_steps_count_from_one():
    with pytest.raises(TaskError, match="steps count from 1"):
        schedule(10, 4).numbers(0, name="a")
