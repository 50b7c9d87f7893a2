import json
import os
from pathlib import Path

import pytest

from engine.errors import TaskError
from engine.tasks.head import MOST_BYTES, ROWS, data_head

ROW = {"question": "What is 1 + 1?", "answer": 2, "meta": {"level": "easy", "source": "made up"}}
COLUMNS = {"question": "What is 1 + 1?", "answer": "2", "meta.level": "easy", "meta.source": "made up"}


def test_lines_and_a_list_of_objects_have_the_same_columns_and_first_values(tmp_path: Path) -> None:
    lines, listed = tmp_path / "mine.jsonl", tmp_path / "mine.json"
    lines.write_text(json.dumps(ROW) + "\n\n" + json.dumps({**ROW, "answer": 3}) + "\n")
    listed.write_text(json.dumps([ROW, {**ROW, "answer": 3}], indent=2))
    for file in (lines, listed):
        head = data_head(str(file))
        assert head is not None
        assert (head.file, head.columns) == (file, COLUMNS)


def test_a_column_that_only_a_later_row_has_is_there_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"question": "a"}\n{"question": "b", "hint": "c"}\n')
    head = data_head(str(file))
    assert head is not None
    assert head.columns == {"question": "a", "hint": "c"}


def test_of_a_csv_cells_beyond_the_names_have_no_column(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("question,answer\na,1,too much\n")
    head = data_head(str(file))
    assert head is not None
    assert head.columns == {"question": "a", "answer": "1"}


def test_of_a_parquet_file_the_first_rows_are_read(tmp_path: Path) -> None:
    import pandas as pd

    file = tmp_path / "mine.parquet"
    pd.DataFrame({"question": ["a", "b"], "answer": [1, 2]}).to_parquet(file)
    head = data_head(str(file))
    assert head is not None
    assert head.columns == {"question": "a", "answer": "1"}


def test_a_folder_shows_its_first_file(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"question": "a"}\n')
    (tmp_path / "test.jsonl").write_text('{"question": "b"}\n')
    head = data_head(str(tmp_path))
    assert head is not None
    assert head.file.name in ("train.jsonl", "test.jsonl")


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_of_a_long_file_no_more_than_its_head_is_looked_at(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"long{suffix}"
    rows = [json.dumps({"question": "é" * 1000}, ensure_ascii=False)] * (ROWS - 1)
    filler = json.dumps({"question": "é" * MOST_BYTES}, ensure_ascii=False)
    broken = "{ this is no JSON"
    if suffix == ".jsonl":
        file.write_text("\n".join([*rows, filler, broken]))
    else:
        file.write_text(f"[{', '.join([*rows, filler, broken])}")
    head = data_head(str(file))
    assert head is not None
    assert list(head.columns) == ["question"]
    assert len(head.columns["question"]) == 200


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.jsonl", b"{'question': 1}\n", "cannot be read as .jsonl"),
        ("a.json", b"[1, 2]", "has no rows of columns"),
        ("a.json", b"[{]", "cannot be read as .json"),
        ("a.jsonl", b"", "has no rows of columns"),
        ("a.jsonl", b'{"a": "\xff"}', "cannot be read as .jsonl"),
        ("a.parquet", b"no parquet", "cannot be read as .parquet"),
        ("a.csv", b'question\n"open', "cannot be read as .csv"),
        ("a.txt", b"text", "is not a data file"),
        ("a.json", b"[" * 100_000, "cannot be read as .json"),
    ],
)
def test_what_cannot_be_read_is_said_in_words(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TaskError, match=words):
        data_head(str(tmp_path / name))


def test_a_name_of_the_hub_has_no_head_and_a_missing_file_is_said(tmp_path: Path) -> None:
    assert data_head("owner/name") is None
    with pytest.raises(TaskError, match="there is no"):
        data_head(str(tmp_path / "nothing.jsonl"))
    with pytest.raises(TaskError, match="cannot be looked at"):
        data_head("/" + "x" * 5000)
    with pytest.raises(TaskError, match="cannot be looked at"):
        data_head("~no-such-user/data.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("{}")
    file.chmod(0)
    with pytest.raises(TaskError, match="cannot be read"):
        data_head(str(file))
