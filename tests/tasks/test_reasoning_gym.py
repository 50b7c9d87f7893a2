import json
import sys

import pytest

from engine.config.sections import TaskConfig
from engine.errors import TaskError
from engine.tasks.reasoning_gym import _unpack, gold_answer, read_options, score_answer
from engine.tasks.task import load_task

pytest.importorskip("reasoning_gym", reason="reasoning-gym is an extra")


def gym(generator="chain_sum", **settings):
    return load_task(TaskConfig(name="reasoning_gym", generator=generator, **settings))


def test_a_problem_carries_its_verifier_and_the_generators_answer():
    (problem,) = gym().train_batch(1, 1, seed=0)
    document = json.loads(problem.gold)
    assert (document["verifier"], document["generator"]) == ("reasoning_gym", "chain_sum")
    assert document["answer"] == gold_answer(problem.gold) == str(eval(problem.question.split(":")[1].strip(" .=?")))


def test_the_verifier_pays_the_right_answer_and_not_another():
    (problem,) = gym().train_batch(1, 1, seed=0)
    answer = gold_answer(problem.gold)
    assert score_answer(answer, problem.gold) == 1.0
    assert score_answer(str(int(answer) + 1), problem.gold) < 1.0


def test_a_generator_without_an_answer_of_its_own_is_judged_by_its_verifier():
    problem = gym("graph_color").train_batch(1, 1, seed=0)[0]
    graph = _unpack(json.loads(problem.gold)["metadata"]["puzzle"])
    colouring = colour(graph["vertices"], graph["edges"], graph["color_options"])
    assert gold_answer(problem.gold) is None
    assert score_answer(json.dumps({str(vertex): value for vertex, value in colouring.items()}), problem.gold) == 1.0
    assert score_answer("{}", problem.gold) < 1.0


def test_a_verifier_that_compares_tuples_still_knows_its_own_answer():
    from reasoning_gym import create_dataset

    entry = create_dataset("arc_1d", seed=1, size=1)[0]
    task = gym("arc_1d")
    problem = task._problem(entry, "train")
    assert score_answer(entry["answer"], problem.gold) == 1.0


def test_a_gold_answer_of_another_task_is_refused():
    with pytest.raises(TaskError, match="names no verifier of reasoning_gym"):
        score_answer("7", "7")


def test_the_splits_share_no_question():
    task = gym(generator_options="min_terms=2; max_terms=2; min_digits=1; max_digits=1")
    train = {problem.question for step in range(1, 6) for problem in task.train_batch(step, 8, seed=0)}
    held_out = {problem.question for split in ("validation", "test") for problem in task.problems(split, 12, seed=1)}
    assert len(train) > 8
    assert len(held_out) == 24
    assert not train & held_out


def test_a_step_gives_the_same_problems_whatever_was_asked_before():
    task = gym()
    expected = gym().train_batch(7, 4, seed=0)
    task.train_batch(1, 4, seed=0)
    assert task.train_batch(7, 4, seed=0) == expected
    assert task.train_batch(8, 4, seed=0) != expected
    assert task.train_batch(7, 4, seed=1) != expected


def test_an_evaluation_has_distinct_problems_and_a_larger_one_adds_to_them():
    problems = gym().problems("validation", 20, seed=0)
    assert len({problem.problem_id for problem in problems}) == 20
    assert gym().problems("validation", 5, seed=0) == problems[:5]
    assert {problem.split for problem in problems} == {"validation"}


def test_options_reach_the_generator():
    task = gym(generator_options="min_terms=6; max_terms=6")
    assert all(
        problem.question.count("+") + problem.question.count("-") >= 5 for problem in task.problems("test", 5, seed=0)
    )


def test_options_are_read_as_yaml():
    assert read_options("min_terms=2; flags=[a, b]; easy=true") == {"min_terms": 2, "flags": ["a", "b"], "easy": True}
    assert read_options(None) == {}
    with pytest.raises(TaskError, match=r"^task\.generator_options: min_terms has no value; write NAME=VALUE"):
        read_options("min_terms")


def test_an_unknown_generator_is_refused_with_the_nearest():
    with pytest.raises(TaskError, match=r"^task\.generator: chain_sums is not one of .*; did you mean chain_sum"):
        gym("chain_sums")


def test_options_that_the_generator_does_not_take_are_refused():
    with pytest.raises(TaskError, match=r"^task\.generator_options: chain_sum does not take \{'terms': 3\}"):
        gym(generator_options="terms=3")


def test_a_generator_that_runs_dry_says_how_many_problems_it_gave(monkeypatch):
    monkeypatch.setattr("engine.tasks.reasoning_gym.PATIENCE", 50)
    with pytest.raises(TaskError, match=r"n: 500 distinct test .* chain_sum gave \d+ and then none in 50 more"):
        gym(generator_options="min_terms=2; max_terms=2; min_digits=1; max_digits=1").problems("test", 500, seed=0)


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(TaskError, match=r"pip install 'grpo-lab\[reasoning-gym\]'"):
        gym()


def test_generated_problems_do_not_run_out():
    assert gym().schedule(8) is None
    assert gym().report is None


def colour(vertices, edges, options):
    """A colouring found by trying each colour for each vertex in turn."""

    def fits(chosen, vertex, value):
        return all(chosen.get(b if a == vertex else a) != value for a, b in edges if vertex in (a, b))

    def extend(chosen, rest):
        if not rest:
            return chosen
        for value in options:
            if fits(chosen, rest[0], value):
                found = extend({**chosen, rest[0]: value}, rest[1:])
                if found:
                    return found
        return None

    return extend({}, list(vertices))
