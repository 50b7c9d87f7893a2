import json
import re
from pathlib import Path

import pytest

from engine.config.sections import SftConfig, TaskConfig
from engine.errors import TaskError
from engine.rewards.verifiers import REWARDS
from engine.tasks import arithmetic
from engine.tasks.demonstrations import load_demonstrations, read_demonstrations
from engine.tasks.prompts import load_prompt
from engine.tasks.task import load_task
from engine.types import Demonstration

LINE = '{"prompt": "What is 1 + 1?", "response": " 2"}'


def written(folder: Path, *lines: str | bytes) -> Path:
    path = folder / "demonstrations.jsonl"
    path.write_bytes(b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines))
    return path


def question_of(demonstration: Demonstration) -> str:
    found = re.search(r"What is ([^?]+)\?", demonstration.prompt)
    assert found
    return found.group(1)


class TestOfArithmetic:
    def test_the_steps_and_the_answer_follow_the_prompt(self):
        (one,) = arithmetic.demonstrations(1, "r1_zero", operands_min=3, operands_max=3, operators="+")
        a, b, c = map(int, question_of(one).split(" + "))
        assert one.prompt == load_prompt("r1_zero").render(f"What is {a} + {b} + {c}?")
        assert one.response == f" {a}+{b}={a + b}; {a + b}+{c}={a + b + c} </think> <answer> {a + b + c} </answer>"

    @pytest.mark.parametrize("name", ["r1_zero", "question_only"])
    def test_each_is_right_and_of_the_training_split(self, name):
        reward = REWARDS[load_prompt(name).reward]
        for each in arithmetic.demonstrations(300, name, seed=3):
            words = question_of(each).split()
            operands, operators = [int(word) for word in words[::2]], words[1::2]
            assert arithmetic.split_of(operands, operators) == "train"
            assert reward(each.response, str(arithmetic.evaluate(operands, operators))).verdict == "correct"

    def test_a_larger_number_adds_to_a_smaller_one_and_none_is_there_twice(self):
        many = arithmetic.demonstrations(200, "r1_zero", seed=1)
        assert arithmetic.demonstrations(50, "r1_zero", seed=1) == many[:50]
        assert len({each.prompt for each in many}) == 200
        assert arithmetic.demonstrations(50, "r1_zero", seed=2) != many[:50]

    def test_the_difficulty_is_that_of_the_task(self):
        task = load_task(TaskConfig(operands_min=2, operands_max=2, largest_operand=9, operators=("+",)))
        for each in load_demonstrations(task, SftConfig(steps=1, examples=30), prompt_name="question_only", seed=0):
            assert re.fullmatch(r"\d \+ \d", question_of(each))

    def test_what_it_cannot_write_is_refused_with_the_way_out(self):
        with pytest.raises(TaskError, match=r"^prompt\.name=chat: .* r1_zero and question_only alone; .*sft\.path"):
            arithmetic.demonstrations(1, "chat")

    def test_a_task_with_too_few_problems_names_the_field(self):
        task = load_task(TaskConfig(operands_max=2, largest_operand=3))
        with pytest.raises(TaskError, match=r"^SFT takes 1024 demonstrations of the task \(sft\.examples\): n: 1024"):
            load_demonstrations(task, SftConfig(steps=1), prompt_name="r1_zero", seed=0)


def test_a_task_without_demonstrations_names_the_file_as_the_way_out():
    class Silent:
        def train_batch(self, step, n, *, seed):
            return []

        def problems(self, split, n, *, seed):
            return []

    with pytest.raises(TaskError, match=r"no demonstrations of its own; give a JSONL file \(sft\.path\)"):
        load_demonstrations(Silent(), SftConfig(steps=1), prompt_name="r1_zero", seed=0)


class TestOfAFile:
    def test_lines_are_read_in_their_order_whatever_else_they_hold(self, tmp_path):
        other = json.dumps({"id": 7, "prompt": "é\n", "response": '"quoted"'})
        path = written(tmp_path, LINE, "", other + "\r", " ")
        expected = [Demonstration("What is 1 + 1?", " 2"), Demonstration("é\n", '"quoted"')]
        assert read_demonstrations(path) == expected
        assert read_demonstrations(path, 1) == expected[:1]
        config = SftConfig(steps=1, path=str(path))
        assert load_demonstrations(load_task(TaskConfig()), config, prompt_name="r1_zero", seed=0) == expected

    @pytest.mark.parametrize(
        ("line", "reason"),
        [
            ('{"prompt" "a"}', "is not JSON: Expecting ':' delimiter (column 11)"),
            ("[1]", "is not an object"),
            ('{"prompt": "a"}', "has no response"),
            ('{"prompt": 3, "response": "b"}', "prompt is not text"),
            ('{"prompt": "a", "response": ""}', "response is empty"),
            ('{"prompt": "", "response": "b"}', "prompt is empty"),
            ('{"prompt": "a", "response": "\\ud800"}', "response has half of a surrogate pair (character 1)"),
            (b'{"prompt": "\xff"}', "is not UTF-8 (byte 13)"),
            ("[" * 100_000, "is nested too deeply"),
        ],
        ids=lambda value: None if len(value) > 99 else "",
    )
    def test_a_bad_line_is_named_with_its_number_and_the_reason(self, tmp_path, line, reason):
        with pytest.raises(TaskError) as caught:
            read_demonstrations(written(tmp_path, LINE, "", line, LINE))
        first, named = str(caught.value).splitlines()
        assert first.endswith('has bad lines; write one {"prompt": "…", "response": "…"} a line:')
        assert named == f"line 3: {reason}"

    def test_the_first_bad_lines_are_named_and_the_others_counted(self, tmp_path):
        with pytest.raises(TaskError) as caught:
            read_demonstrations(written(tmp_path, *["{}"] * 13))
        lines = str(caught.value).splitlines()
        assert lines[1:] == [*(f"line {number}: has no prompt" for number in range(1, 11)), "and 3 more"]

    @pytest.mark.parametrize("lines", [[], ["", " "]])
    def test_a_file_without_a_line_is_refused(self, tmp_path, lines):
        with pytest.raises(TaskError, match="has no line; write one"):
            read_demonstrations(written(tmp_path, *lines))

    def test_more_examples_than_there_are_lines_are_refused(self, tmp_path):
        with pytest.raises(TaskError, match=r"^sft\.examples=3, but sft\.path=.* has 2; ask for at most 2$"):
            read_demonstrations(written(tmp_path, LINE, LINE), 3)

    def test_a_file_that_is_not_there_is_refused(self, tmp_path):
        with pytest.raises(TaskError, match=r"^sft\.path=.*nowhere cannot be read: No such file or directory"):
            read_demonstrations(tmp_path / "nowhere")
