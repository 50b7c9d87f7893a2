from engine.tasks.report import overlaps, question_key
from engine.types import Problem


def pair(question: str, problem_id: str) -> tuple[str, Problem]:
    return question_key(question), Problem(problem_id, question, "1")


def test_case_spaces_and_forms_of_a_character_make_no_other_question():
    assert question_key("What is  1 + 1 ?\n") == question_key("WHAT IS 1+１?")


def test_a_sign_makes_another_question():
    assert question_key("What is 1 + 1?") != question_key("What is 1 - 1?")


def test_each_two_splits_are_compared_and_the_first_few_named():
    train = [pair(f"q{number}", f"train-{number}") for number in range(6)]
    test = [pair(f"Q{number}", f"test-{number}") for number in range(1, 6)]
    found = overlaps({"train": train, "validation": [pair("q0", "validation-0")], "test": test})
    assert [(each.first, each.second, each.count) for each in found] == [
        ("train", "validation", 1),
        ("train", "test", 5),
    ]
    assert found[1].examples == ("train-1", "train-2", "train-3")
