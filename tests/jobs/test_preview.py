import json
import subprocess
import sys
from pathlib import Path

import pytest

from engine.config import RunConfig, parse_config
from engine.jobs.preview import LEFT_ALONE, preview_lines
from engine.store.database import open_database
from engine.tasks.run_preview import from_json

SMALL = {"rollout_batch_size": 8, "group_size": 2, "evaluation.size": 2}
COMMAND = [sys.executable, "-m", "engine.jobs.preview"]


def line(config: RunConfig) -> str:
    return json.dumps(config.model_dump(mode="json")) + "\n"


def test_the_process_writes_what_it_knows_line_by_line_and_the_last_is_whole() -> None:
    asked = subprocess.run(
        [*COMMAND, "--n", "1"], input=line(parse_config(SMALL)), capture_output=True, text=True, timeout=120, check=True
    )
    states = [from_json(each) for each in asked.stdout.splitlines()]
    assert [state.stage for state in states][-3:] == ["tokenizer", "gold", "done"]
    assert len(states[-1].rows) == 1
    assert states[-1].rows[0].tokens
    assert states[-1].error is None


def test_an_attended_process_ends_when_its_input_is_closed() -> None:
    # A module in place of reading data, which would be over before the input is closed.
    code = (
        "import sys, threading, engine.jobs.preview as preview\n"
        "preview.preview_lines = lambda line, n: (threading.Event().wait() for _ in [0])\n"
        "sys.exit(preview.main(['--attended']))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        child.communicate(line(parse_config(SMALL)).encode(), timeout=60)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == LEFT_ALONE


def test_a_config_that_is_not_valid_is_an_error_in_words() -> None:
    (known,) = preview_lines('{"rollout": {"group_size": 1}}', 5)
    assert known.stage == "done"
    assert known.error is not None
    assert "group_size" in known.error


def test_weights_to_begin_with_that_are_not_there_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    open_database().close()
    *_, known = preview_lines(line(parse_config({**SMALL, "model.init_from": "run:nothing@4"})), 1)
    assert known.error is not None
    assert "nothing" in known.error
