import pytest

from engine.config.sections import TaskConfig
from engine.errors import TaskError
from engine.tasks.listed import Entry, listed_task
from engine.tasks.report import question_key


def task_of(*, source="data.jsonl", train=(), validation=(), test=(), **settings):
    config = TaskConfig(name="jsonl", path="data.jsonl", **settings)
    return listed_task(config, {"train": train, "validation": validation, "test": test}, source=source)


def numbered(*numbers: int) -> list[Entry]:
    return [Entry(f"What is {number} + 1?", str(number + 1)) for number in numbers]


def questions(task, split):
    return {problem.question for problem in task.problems(split, task.report.problems[split], seed=0)}


def test_the_splits_of_the_data_are_kept():
    task = task_of(train=numbered(1, 2, 3), validation=numbered(4, 5), test=numbered(6))
    assert task.report.problems == {"train": 3, "validation": 2, "test": 1}
    assert questions(task, "validation") == {"What is 4 + 1?", "What is 5 + 1?"}
    assert {problem.split for problem in task.problems("test", 1, seed=0)} == {"test"}


def test_without_a_validation_split_a_share_of_training_is_held_out_and_said():
    task = task_of(train=numbered(*range(50)), held_out_share=0.2)
    assert task.report.problems == {"train": 40, "validation": 10, "test": 0}
    assert not questions(task, "train") & questions(task, "validation")
    assert "10 training problems are held out for validation." in task.report.sentences


def test_what_is_held_out_does_not_depend_on_the_order_of_the_rows():
    forwards, backwards = task_of(train=numbered(*range(30))), task_of(train=numbered(*reversed(range(30))))
    assert questions(forwards, "validation") == questions(backwards, "validation")


def test_the_same_question_in_another_spelling_is_never_on_both_sides_of_the_held_out():
    twins = [
        entry for number in range(30) for entry in (Entry(f"Is {number} odd?", "a"), Entry(f"IS {number}  odd?", "b"))
    ]
    task = task_of(train=twins, held_out_share=0.5)
    keys = [{question_key(question) for question in questions(task, split)} for split in ("train", "validation")]
    assert len(keys[0]) == len(keys[1]) == 15
    assert not keys[0] & keys[1]


def test_validation_may_be_the_test_split():
    task = task_of(train=numbered(1, 2), validation=numbered(3), test=numbered(4, 5), validation_from="test")
    assert questions(task, "validation") == questions(task, "test") == {"What is 4 + 1?", "What is 5 + 1?"}


def test_validation_may_be_held_out_although_the_data_has_its_own():
    task = task_of(train=numbered(*range(10)), validation=numbered(20, 21, 22), validation_from="train")
    assert questions(task, "validation") < {f"What is {number} + 1?" for number in range(10)}


def test_training_problems_of_the_test_are_found_reported_and_left_out():
    task = task_of(train=[*numbered(1, 2, 3), Entry("what is 9 +1 ?", "10")], test=numbered(2, 9))
    assert "What is 2 + 1?" not in questions(task, "train") | questions(task, "validation")
    (overlap,) = task.report.overlaps
    assert (overlap.first, overlap.second, overlap.count, len(overlap.examples)) == ("train", "test", 2, 2)
    assert task.report.left_out == 2
    assert any(sentence.startswith("2 questions are in train and in test") for sentence in task.report.sentences)


def test_overlapping_problems_stay_where_the_config_keeps_them():
    task = task_of(train=numbered(1, 2, 3), validation=numbered(8), test=numbered(2), overlap="keep")
    assert task.report.problems["train"] == 3
    assert task.report.left_out == 0
    assert task.report.overlaps[0].count == 1


def test_the_same_question_about_another_page_is_another_question():
    task = task_of(train=[Entry("What is the change?", "1", about="a.pdf")], validation=numbered(1),
                   test=[Entry("What is the change?", "2", about="b.pdf")])  # fmt: skip
    assert task.report.overlaps == ()


def test_repeated_and_incomplete_rows_are_counted_and_left_out():
    rows = [*numbered(1, 2, 2), Entry("What is 3 + 1?", " "), Entry("", "5")]
    task = task_of(train=rows, validation=numbered(7))
    assert (task.report.copies, task.report.incomplete, task.report.problems["train"]) == (1, 2, 2)
    assert task.report.read["train"] == 5


def test_two_gold_answers_to_one_question_are_two_problems():
    task = task_of(train=[Entry("What is 1/2?", "0.5"), Entry("What is 1/2?", "1/2")], validation=numbered(7))
    assert len({problem.problem_id for problem in task.train_batch(1, 2, seed=0)}) == 2


def test_an_id_of_two_problems_is_refused():
    rows = [Entry("What is 1 + 1?", "2", "a"), Entry("What is 1 + 2?", "3", "a")]
    with pytest.raises(TaskError, match=r"^task\.id_column: a is the id of two different train problems"):
        task_of(train=rows)


def test_ids_are_those_of_the_data_or_stay_with_the_problem():
    task = task_of(train=[Entry("What is 1 + 1?", "2", "row-7"), *numbered(2)], validation=numbered(5))
    ids = {problem.question: problem.problem_id for problem in task.train_batch(1, 2, seed=0)}
    again = task_of(train=numbered(3, 2, 8), validation=numbered(5))
    assert ids["What is 1 + 1?"] == "jsonl-row-7"
    assert ids["What is 2 + 1?"] in {problem.problem_id for problem in again.train_batch(1, 3, seed=0)}


def test_training_steps_go_through_all_problems_before_one_comes_again():
    task = task_of(train=numbered(*range(8)), validation=numbered(20))
    first_pass = [problem.question for step in (1, 2) for problem in task.train_batch(step, 4, seed=3)]
    assert len(set(first_pass)) == 8
    assert task.train_batch(3, 4, seed=3) != task.train_batch(1, 4, seed=3)


def test_a_step_gives_the_same_problems_whatever_was_asked_before():
    task = task_of(train=numbered(*range(20)), validation=numbered(30))
    for step in (1, 2, 3, 9):
        task.train_batch(step, 4, seed=1)
    fresh = task_of(train=numbered(*range(20)), validation=numbered(30))
    assert fresh.train_batch(12, 4, seed=1) == task.train_batch(12, 4, seed=1)
    assert task.train_batch(12, 4, seed=2) != task.train_batch(12, 4, seed=1)


def test_an_evaluation_has_the_same_problems_for_one_seed_and_a_larger_one_adds_to_them():
    task = task_of(train=numbered(1), validation=numbered(*range(10, 40)))
    some = task.problems("validation", 10, seed=0)
    assert task.problems("validation", 20, seed=0)[:10] == some
    assert task.problems("validation", 10, seed=1) != some
    assert len({problem.problem_id for problem in task.problems("validation", 30, seed=0)}) == 30


def test_where_there_are_fewer_problems_than_asked_for_all_of_them_come():
    task = task_of(train=numbered(1, 2, 3), validation=numbered(4, 5))
    assert {problem.question for problem in task.problems("validation", 256, seed=0)} == {
        problem.question for problem in task.problems("validation", 2, seed=0)
    }
    assert len(task.problems("validation", 256, seed=0)) == 2


def test_a_split_that_the_data_lacks_is_refused_with_the_way_to_give_it():
    task = task_of(train=numbered(1, 2, 3), validation=numbered(4, 5))
    with pytest.raises(TaskError, match=r"data\.jsonl has no test problems; give a file for them"):
        task.problems("test", 1, seed=0)


def test_data_smaller_than_one_step_is_refused():
    task = task_of(train=numbered(1, 2, 3), validation=numbered(4))
    with pytest.raises(TaskError, match="a step takes 4 prompts"):
        task.train_batch(1, 4, seed=0)


def test_data_without_a_training_problem_is_refused():
    with pytest.raises(TaskError, match=r"^task\.path: data\.jsonl has no training problems"):
        task_of(train=[Entry("Why?", "")])
