import pytest

from engine.errors import TaskError
from engine.tasks.rows import by_column, cell, load_rows, split_named

ROWS = [{"question": "What is 1 + 1?", "answer": "2"}, {"question": "What is 1 + 2?", "answer": "3"}]


def test_a_file_is_training_data(write_jsonl):
    assert load_rows(str(write_jsonl("mine.jsonl", ROWS))) == {"train": ROWS}


def test_a_folder_gives_the_splits_that_its_files_names_say(write_jsonl):
    write_jsonl("data/train.jsonl", ROWS)
    write_jsonl("data/dev_200.json", ROWS[:1])
    write_jsonl("data/test-00000-of-00002.jsonl", ROWS[:1])
    write_jsonl("data/test-00001-of-00002.jsonl", ROWS[1:])
    folder = write_jsonl("data/notes.jsonl", [{"other": 1}]).parent
    assert load_rows(str(folder)) == {"train": ROWS, "validation": ROWS[:1], "test": ROWS}


@pytest.mark.parametrize(
    ("name", "split"),
    [("train", "train"), ("validation", "validation"), ("dev_200", "validation"), ("my-test", "test"), ("sft", None)],
)
def test_a_name_says_its_split(name, split):
    assert split_named(name) == split


def test_a_word_that_only_begins_like_a_split_says_none():
    assert split_named("testimony") is None


def test_rows_are_put_into_the_splits_that_a_column_says():
    rows = {"train": [{"part": "train", "n": 1}, {"part": "Dev", "n": 2}, {"part": "test", "n": 3}]}
    found = by_column(rows, "part")
    assert {split: [row["n"] for row in members] for split, members in found.items()} == {
        "train": [1],
        "validation": [2],
        "test": [3],
    }


def test_a_split_column_that_says_no_split_is_refused():
    with pytest.raises(TaskError, match=r"^task\.split_column: part says 'extra' .*; it must say train"):
        by_column({"train": [{"part": "extra"}]}, "part")


def test_a_dot_reaches_into_a_nested_column_unless_a_column_has_that_very_name():
    assert cell({"qa": {"question": "Why?"}}, "qa.question", field="question_column") == "Why?"
    assert cell({"qa.question": "How?", "qa": {"question": "Why?"}}, "qa.question", field="question_column") == "How?"


def test_a_missing_column_is_refused_with_those_that_there_are():
    with pytest.raises(
        TaskError, match=r"^task\.answer_column: gold is not a column .* has question, qa\.id; name one"
    ):
        cell({"question": "Why?", "qa": {"id": 1}}, "gold", field="answer_column")


def test_a_path_that_is_not_there_is_refused_with_what_may_be_given():
    with pytest.raises(TaskError, match=r"^task\.path: there is no data/none\.jsonl; give a file \(\.jsonl"):
        load_rows("data/none.jsonl")


def test_a_folder_without_a_split_in_its_names_is_refused_with_what_it_has(write_jsonl):
    folder = write_jsonl("data/mine.jsonl", ROWS).parent
    with pytest.raises(TaskError, match=r"no file in .* is named after a split \(it has mine\.jsonl\)"):
        load_rows(str(folder))
