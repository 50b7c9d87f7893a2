import sys

import pytest

from engine.config import parse_config
from engine.errors import TaskError
from engine.tasks.preview import preview
from engine.tasks.task import load_task

SMALL = {"rollout_batch_size": 8, "group_size": 2, "evaluation.size": 2}


@pytest.fixture
def own_data(write_jsonl):
    rows = [{"question": f"What is {number} + 1?", "answer": number + 1} for number in range(25)]
    return write_jsonl("mine.jsonl", rows)


def test_a_preview_shows_the_first_problems_of_the_first_step_as_they_are_put(own_data):
    config = parse_config({**SMALL, "task.name": f"jsonl:{own_data}", "prompt.name": "minimal"})
    shown = preview(config, 2)
    first = load_task(config.task).train_batch(1, 4, seed=0)[:2]
    assert [row.problem_id for row in shown.rows] == [problem.problem_id for problem in first]
    row = shown.rows[0]
    assert row.prompt == f"{first[0].question}\nPut the final answer in \\boxed{{}}.\n"
    assert (row.gold, row.split) == (first[0].gold, "train")
    assert (row.prompt_length, row.question_length, row.gold_length) == (
        len(row.prompt),
        len(first[0].question),
        len(first[0].gold),
    )


def test_a_preview_names_reward_and_stop_strings_and_how_the_data_is_dealt_out(own_data):
    shown = preview(parse_config({**SMALL, "task.name": f"jsonl:{own_data}"}))
    assert (shown.reward, shown.stop_strings) == ("answer_tag", ("</answer>",))
    assert (shown.schedule.steps_per_epoch, shown.schedule.prompts_unused) == (5, 3)
    assert shown.sentences == (
        f"jsonl ({own_data}): train 23, validation 2 problems.",
        "2 training problems are held out for validation.",
        "23 training problems last 5 steps of 4; 3 of them, other ones each time, are unused.",
    )


def test_generated_problems_have_no_schedule_and_nothing_to_report():
    shown = preview(parse_config(SMALL), 3)
    assert len(shown.rows) == 3
    assert (shown.schedule, shown.sentences) == (None, ())


ONE_DIGIT = {"task.operands_max": 2, "task.largest_operand": 9, "task.operators": ["+"]}


def test_generated_problems_that_are_few_are_counted_and_an_evaluation_asks_all_there_are():
    shown = preview(parse_config({**SMALL, **ONE_DIGIT, "evaluation.size": 64}))
    assert shown.sentences == (
        "arithmetic: train 59, validation 8, test 14 problems.",
        "evaluation.size=64 is above the 8 validation problems there are: each evaluation asks them all.",
    )


def test_more_prompts_a_step_than_there_are_generated_problems_are_refused():
    with pytest.raises(TaskError, match=r"^rollout\.rollout_batch_size: a step takes 64 prompts .* 59 training"):
        preview(parse_config({**SMALL, **ONE_DIGIT, "rollout_batch_size": 128}))


def test_a_difficulty_without_a_held_out_problem_is_refused():
    with pytest.raises(TaskError, match=r"^task\.largest_operand: no validation problem is left"):
        preview(parse_config({**SMALL, "group_size": 8, **ONE_DIGIT, "task.largest_operand": 2}))


def test_of_a_chat_prompt_the_message_is_shown_and_that_a_template_goes_around_it(own_data):
    settings = {**SMALL, "task.name": f"jsonl:{own_data}", "prompt.name": "chat", "model.name": "some/model"}
    shown = preview(parse_config(settings), 1)
    assert shown.in_chat_template
    assert shown.rows[0].prompt.endswith("put the final answer in \\boxed{}.")


def test_a_preview_refuses_what_the_run_would_refuse(own_data):
    with pytest.raises(TaskError, match="a step takes 64 prompts"):
        preview(parse_config({**SMALL, "rollout_batch_size": 128, "task.name": f"jsonl:{own_data}"}))
    with pytest.raises(TaskError, match=r"has no test problems"):
        preview(parse_config({**SMALL, "evaluation.split": "test", "task.name": f"jsonl:{own_data}"}))


def test_a_preview_needs_no_torch(own_data):
    import subprocess

    code = (
        "import sys; from engine.config import parse_config; from engine.tasks.preview import preview; "
        f"preview(parse_config({ {**SMALL, 'task.name': f'jsonl:{own_data}'}!r})); "
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
