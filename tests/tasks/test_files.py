import json

import pytest

from engine.errors import TaskError
from engine.tasks.files import read_files

ROWS = [{"question": "What is 1 + 1?", "answer": "2"}, {"question": "What is 1 + 2?", "answer": "3"}]


def test_a_json_list_a_csv_and_a_parquet_file_give_the_same_rows(tmp_path):
    import pandas as pd

    (tmp_path / "a.json").write_text(json.dumps(ROWS, indent=1))
    pd.DataFrame(ROWS).to_csv(tmp_path / "a.csv", index=False)
    pd.DataFrame(ROWS).to_parquet(tmp_path / "a.parquet")
    for name in ("a.json", "a.csv", "a.parquet"):
        assert read_files([tmp_path / name]) == ROWS


def test_cells_of_a_csv_stay_as_they_are_written(tmp_path):
    (tmp_path / "a.csv").write_text('question,answer,id\n"One, or none?",NA,007\nHow much?,"1,365",8\n')
    (first, second) = read_files([tmp_path / "a.csv"])
    assert first == {"question": "One, or none?", "answer": "NA", "id": "007"}
    assert second["answer"] == "1,365"


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", '{"question": "Why?"\n{"q'), ("a.jsonl", ""), ("a.parquet", "no"), ("a.csv", "")]
)
def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(TaskError, match=rf"^task\.path: .*{name} cannot be read as"):
        read_files([tmp_path / name])


def test_another_kind_of_file_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 + 1")
    with pytest.raises(TaskError, match=r"a\.txt is not a data file; give one of \.jsonl"):
        read_files([tmp_path / "a.txt"])


def test_a_parquet_file_leaves_nothing_in_the_cache_of_datasets(tmp_path, monkeypatch):
    import datasets
    import pandas as pd

    pd.DataFrame(ROWS).to_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    read_files([tmp_path / "a.parquet"])
    assert not (tmp_path / "cache").exists()


def test_values_come_as_the_file_has_them(write_jsonl):
    rows = [{"a": "2020-01-01"}, {"a": 0.56197}, {"a": 12345678901234567890123}, {"a": "yes"}, {"a": None}]
    assert read_files([write_jsonl("mine.jsonl", rows)]) == rows


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", "[1, 2]\n"), ("a.json", '"Why?"')])
def test_a_file_of_something_else_than_rows_is_refused(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(TaskError, match="something else than rows of columns"):
        read_files([tmp_path / name])
