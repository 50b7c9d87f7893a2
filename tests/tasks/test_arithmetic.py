import itertools

import pytest

from engine.errors import TaskError
from engine.tasks import arithmetic


def _terms(question: str) -> tuple[tuple[str, int], ...]:
    """The signed addends of a question in `+` and `-`, sorted: the problem without its order."""
    words = ("+ " + question.removeprefix("What is ").removesuffix("?")).split()
    return tuple(sorted((words[i], int(words[i + 1])) for i in range(0, len(words), 2)))


def test_a_question_reads_as_written_and_its_gold_answer_is_the_value():
    problem = arithmetic.to_problem((7, 12, 3), ("+", "-"))
    assert problem.question == "What is 7 + 12 - 3?"
    assert problem.gold == "16"


def test_times_binds_tighter_than_plus_and_minus():
    assert arithmetic.evaluate((20, 2, 3, 5), ("-", "*", "+")) == 19
    assert arithmetic.evaluate((2, 3, 4), ("*", "*")) == 24


def test_every_gold_answer_is_the_value_of_its_question():
    for problem in arithmetic.problems("train", 200, seed=3, operators="+-*"):
        expression = problem.question.removeprefix("What is ").removesuffix("?")
        assert problem.gold == str(eval(expression))


def test_no_partial_result_from_left_to_right_is_negative():
    for problem in arithmetic.problems("train", 300, seed=1):
        words = problem.question.removeprefix("What is ").removesuffix("?").split()
        for end in range(1, len(words) + 1, 2):
            assert eval(" ".join(words[:end])) >= 0


def test_the_same_seed_gives_the_same_problems_and_another_seed_gives_others():
    first = arithmetic.problems("test", 50, seed=7)
    assert arithmetic.problems("test", 50, seed=7) == first
    assert arithmetic.problems("test", 50, seed=8) != first


def test_asking_for_more_problems_keeps_the_first_ones():
    assert arithmetic.problems("test", 300, seed=5)[:40] == arithmetic.problems("test", 40, seed=5)
    assert arithmetic.train_batch(9, 64, seed=5)[:16] == arithmetic.train_batch(9, 16, seed=5)


def test_problems_stay_what_they_are_across_versions():
    questions = [problem.question for problem in arithmetic.problems("test", 3, seed=0)]
    assert questions == ["What is 20 + 9 - 16?", "What is 19 + 15 + 8 + 7?", "What is 9 + 12 - 11 - 6?"]
    assert arithmetic.problems("test", 1, seed=0)[0].problem_id == "arithmetic-19cf46f90801"


def test_operands_keep_to_their_count_and_size():
    counts = set()
    for problem in arithmetic.problems("train", 200, seed=0, operands_min=2, operands_max=5, largest_operand=9):
        terms = _terms(problem.question)
        counts.add(len(terms))
        assert all(1 <= number <= 9 for _, number in terms)
    assert counts == {2, 3, 4, 5}


def test_only_the_operators_asked_for_occur():
    for problem in arithmetic.problems("train", 50, operators="+"):
        assert "-" not in problem.question


def test_splits_share_no_problem_in_any_order_of_addends():
    sets = {
        split: {_terms(problem.question) for problem in arithmetic.problems(split, 400, seed=seed)}
        for seed, split in enumerate(arithmetic.SPLITS)
    }
    for one, other in itertools.combinations(sets.values(), 2):
        assert not one & other


@pytest.mark.parametrize("order", list(itertools.permutations([("+", 7), ("+", 12), ("+", 5)])))
def test_the_order_of_addends_does_not_change_the_split(order):
    operands = [number for _, number in order]
    assert arithmetic.split_of(operands, ("+", "+")) == arithmetic.split_of((5, 7, 12), ("+", "+"))


def test_the_order_of_factors_does_not_change_the_split():
    for a, b, c in itertools.product(range(1, 6), repeat=3):
        assert arithmetic.split_of((a, b, c), ("*", "+")) == arithmetic.split_of((c, b, a), ("+", "*"))


@pytest.mark.parametrize(
    ("operators", "counts"),
    [("+", {"train": 59, "validation": 8, "test": 14}), ("*", {"train": 63, "validation": 10, "test": 8})],
)
def test_one_digit_problems_are_counted_and_no_split_has_one_of_another_in_either_order(operators, counts):
    difficulty = {"operands_min": 2, "operands_max": 2, "largest_operand": 9, "operators": operators}
    assert arithmetic.counted(**difficulty) == counts
    assert sum(counts.values()) == 81
    seen: dict[frozenset[int], str] = {}
    for split, count in counts.items():
        for problem in arithmetic.problems(split, count, **difficulty):
            first, sign, second = problem.question.removeprefix("What is ").removesuffix("?").split()
            assert sign == operators
            assert problem.gold == str(eval(f"{first}{sign}{second}"))
            assert seen.setdefault(frozenset((int(first), int(second))), split) == split
    assert len(seen) == 45


def test_problems_too_many_to_be_listed_are_not_counted():
    assert arithmetic.counted(operands_min=2, operands_max=4, largest_operand=20, operators="+-") is None


def test_products_are_worked_before_sums_in_a_demonstration():
    difficulty = {"seed": 3, "operands_min": 3, "operands_max": 4, "largest_operand": 9, "operators": "+-*"}
    shown = arithmetic.demonstrations(60, "question_only", **difficulty)
    assert any("*" in each.prompt and "+" in each.prompt for each in shown)
    for each in shown:
        expression = each.prompt.removeprefix("What is ").removesuffix("?")
        steps = each.response.partition(". So ")[0].split(";")
        assert all(eval(step.replace("=", "==").strip()) for step in steps)
        assert each.response.endswith(f"\\boxed{{{eval(expression)}}}")
        assert arithmetic.split_of(*_parsed(expression)) == "train"


def _parsed(expression: str) -> tuple[list[int], list[str]]:
    words = expression.split()
    return [int(word) for word in words[::2]], words[1::2]


def test_the_splits_take_about_eight_one_and_one_in_ten():
    splits = [arithmetic.split_of((a, b), ("+",)) for a in range(1, 101) for b in range(a, 101)]
    assert splits.count("train") / len(splits) == pytest.approx(0.8, abs=0.02)
    assert splits.count("test") / len(splits) == pytest.approx(0.1, abs=0.02)


def test_each_problem_names_its_split():
    for split in arithmetic.SPLITS:
        assert {problem.split for problem in arithmetic.problems(split, 20)} == {split}


def test_a_list_holds_no_problem_twice_even_where_it_takes_all_there_are():
    everything = arithmetic.problems("train", 100, operands_max=2, largest_operand=12)
    assert len({problem.problem_id for problem in everything}) == 100


def test_a_training_step_gives_the_same_batch_whatever_was_asked_before():
    expected = arithmetic.train_batch(41, 16, seed=2)
    for step in (1, 2, 40, 42):
        arithmetic.train_batch(step, 16, seed=2)
    assert arithmetic.train_batch(41, 16, seed=2) == expected


def test_training_batches_differ_between_steps_and_between_seeds():
    batches = [arithmetic.train_batch(step, 16, seed=seed) for step in (1, 2) for seed in (0, 1)]
    assert all(one != other for one, other in itertools.combinations(batches, 2))


def test_a_training_batch_has_training_problems_only_and_none_twice():
    for step in range(1, 40):
        batch = arithmetic.train_batch(step, 32, seed=0)
        assert {problem.split for problem in batch} == {"train"}
        assert len({problem.problem_id for problem in batch}) == 32


def test_a_space_that_is_too_small_says_how_many_problems_it_holds():
    held = len(arithmetic._all_expressions("train", 2, 3, "+"))
    with pytest.raises(TaskError, match=rf"^n: 50 .* up to 3 with operators '\+' give {held}; ask for fewer"):
        arithmetic.problems("train", 50, operands_max=2, largest_operand=3, operators="+")
    assert len(arithmetic.problems("train", held, operands_max=2, largest_operand=3, operators="+")) == held


def test_one_operand_count_used_up_leaves_the_others():
    counts = [len(_terms(p.question)) for p in arithmetic.problems("test", 300, operands_max=3, seed=0)]
    held = len(arithmetic._all_expressions("test", 2, 20, "+-"))
    assert 0 < held < 150
    assert counts.count(2) == held
    assert counts.count(3) == 300 - held


def test_a_large_space_with_hardly_any_problem_ends_in_an_error(monkeypatch):
    monkeypatch.setattr(arithmetic, "PATIENCE", 200)
    with pytest.raises(TaskError, match="operators '-' give"):
        arithmetic.problems("test", 5000, operands_min=8, operands_max=8, largest_operand=20, operators="-")


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("split", {"split": "dev"}),
        ("n", {"n": -1}),
        ("operands_min", {"operands_min": 1}),
        ("operands_max", {"operands_min": 4, "operands_max": 3}),
        ("largest_operand", {"largest_operand": 0}),
        ("operators", {"operators": "+/"}),
        ("operators", {"operators": ""}),
        ("operators", {"operators": "++"}),
    ],
)
def test_a_difficulty_out_of_range_is_refused_by_the_name_of_its_field(field, arguments):
    with pytest.raises(TaskError, match=f"^{field}: "):
        arithmetic.problems(**{"split": "train", "n": 4, **arguments})
