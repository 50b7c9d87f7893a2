"""`grpo-lab grade` on files of answers."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from engine.cli import app
from engine.rewards import grading
from engine.rewards.pool import GraderPool

LINES: list[dict[str, Any]] = [
    {"id": "a", "format": "gsm8k", "response": "So.\n#### 42", "gold": "42", "note": "zweiundvierzig ≠ 41"},
    {"id": "b", "format": "boxed", "response": r"\boxed{x+1}", "gold": "1+x"},
    {"id": "c", "format": "answer_tag", "response": "<answer>5 or 6</answer>", "gold": "6"},
    {"id": "d", "format": "finqa", "response": "Answer: 14.1%", "gold": 0.14136},
    {"id": "e", "format": "boxed", "response": "42", "gold": "42"},
    {"id": "f", "format": "boxed", "response": r"\boxed{41}", "gold": "42"},
    {"id": "g", "format": "gsm8k", "response": "#### 7", "gold": ""},
]
VERDICTS = ["correct", "correct", "unreadable", "correct", "unreadable", "wrong", "not_graded"]


def write(path: Path, *lines: str | dict[str, Any]) -> str:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return str(path)


def run(*arguments: str, exit_code: int = 0, stdin: str | bytes | None = None) -> Result:
    result = CliRunner().invoke(app, ["grade", *arguments], input=stdin)
    assert result.exit_code == exit_code, (result.stdout, result.stderr, result.exception)
    return result


def test_the_lines_come_back_in_order_with_their_verdicts(tmp_path: Path):
    found = [json.loads(line) for line in run(write(tmp_path / "a.jsonl", *LINES), "--json").stdout.splitlines()]
    assert [line["verdict"] for line in found] == VERDICTS
    assert [{name: line[name] for name in given} for line, given in zip(found, LINES, strict=True)] == LINES
    assert [line["answer"] for line in found] == ["42", "x+1", "5 or 6", "14.1%", None, "41", "7"]
    assert all(line["reason"] and line["seconds"] >= 0 for line in found)


def test_a_dash_reads_standard_input():
    text = "".join(json.dumps(line) + "\n" for line in LINES[:1])
    (line,) = run("-", "--json", stdin=text).stdout.splitlines()
    assert json.loads(line)["verdict"] == "correct"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[1]", "a JSON list; give an object with format, response and gold"),
        ('{"format": "boxed", "response": "x"}', "gold: missing"),
        ('{"format": "boxed", "response": "x", "gold": null}', "gold: missing"),
        ('{"format": "box", "response": "x", "gold": "x"}', "format: 'box' is not a format; choose one of gsm8k"),
        ('{"format": ["boxed"], "response": "x", "gold": "x"}', "format: ['boxed'] is not a format"),
        ('{"format": "boxed", "response": 5, "gold": "x"}', "response: 5 is no text"),
        ('{"format": "boxed", "response": "x", "gold": true}', "gold: True is no answer"),
        ('{"format": "boxed", "response": "x", "gold": NaN}', "not JSON: NaN is no JSON number"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_bad_line_is_reported_with_its_number_and_does_not_stop_the_rest(tmp_path: Path, bad: str, reason: str):
    path = write(tmp_path / "a.jsonl", LINES[0], "", bad, LINES[5])
    result = run(path, "--json", exit_code=1)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["a", "f"]
    assert result.stderr.startswith(f"line 3: {reason}")
    assert len(result.stderr.splitlines()) == 1


def test_a_line_that_is_not_utf_8_is_a_bad_line():
    result = run("-", "--json", exit_code=1, stdin=json.dumps(LINES[0]).encode() + b"\n\xff\n")
    assert (len(result.stdout.splitlines()), result.stderr) == (1, "line 2: not UTF-8\n")


def test_the_table_counts_verdicts_by_format_and_shows_the_slowest(tmp_path: Path):
    result = run(write(tmp_path / "a.jsonl", *LINES, "no"), exit_code=1)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["format", "correct", "wrong", "unreadable", "not_graded", "all"]
    assert ["boxed", "1", "1", "1", "0", "3"] in rows
    assert ["gsm8k", "1", "0", "0", "1", "2"] in rows
    assert ["all", "3", "1", "2", "1", "7"] in rows
    assert "line 2: " in result.stdout
    assert "1 lines could not be read." in result.stdout


def test_an_answer_that_hangs_is_not_graded_and_holds_up_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hostile = {"format": "boxed", "response": r"\boxed{(10!)!}", "gold": "5"}
    with GraderPool(2, seconds=1) as pool:
        monkeypatch.setattr(grading, "shared_pool", lambda: pool)
        result = run(write(tmp_path / "a.jsonl", LINES[1], hostile, LINES[1]), "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["verdict"] for line in found] == ["correct", "not_graded", "correct"]
    assert found[1]["reason"] == "stopped after 1 s"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    result = run(str(tmp_path / "no.jsonl"), exit_code=2)
    assert "cannot be read (No such file or directory)" in result.stderr


def test_a_lone_surrogate_passes_through(tmp_path: Path):
    path = write(tmp_path / "a.jsonl", r'{"format": "boxed", "response": "\ud800 \\boxed{1}", "gold": "1"}')
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli", "grade", path, "--json"], check=True, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["response"].startswith("\ud800")
    assert done.stderr == ""
