import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from dashboard.data.preview import PreviewJob, Previews, preview_key
from engine.config import parse_config
from engine.tasks.run_preview import RunPreview, to_json

CONFIG = parse_config({})
PATIENCE = 60.0
# A child of its own, as the graders are, whose pid it says; then silence.
HANGS = (
    "import subprocess, sys\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import threading; threading.Event().wait()'])\n"
    f"print({to_json(RunPreview(stage='gold'))!r}.replace('null', f'\"{{child.pid}}\"', 1), flush=True)\n"
    "child.wait()\n"
)


def code(text: str) -> Sequence[str]:
    return (sys.executable, "-c", text)


@pytest.fixture
def jobs() -> Iterator[list[PreviewJob]]:
    started: list[PreviewJob] = []
    yield started
    for job in started:
        job.cancel()


def gone(pid: int) -> bool:
    """Wait until a process has ended, be it reaped or not; return whether it has."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def first_word(job: PreviewJob) -> RunPreview:
    """Wait for the first thing that a job says."""
    while job.latest.stage == "data" and not job.wait(0.05):
        job.ask()
    return job.ask()


def test_a_job_gives_what_its_process_wrote_last(jobs: list[PreviewJob]) -> None:
    done = to_json(RunPreview(stage="done", reward="boxed"))
    job = PreviewJob(CONFIG, command=code(f"print('{to_json(RunPreview())}'); print('{done}')"))
    jobs.append(job)
    assert job.wait(PATIENCE)
    assert job.ask() == RunPreview(stage="done", reward="boxed")
    assert (job.running, job.trouble) == (False, None)


def test_the_process_reads_the_config_from_its_input(jobs: list[PreviewJob]) -> None:
    text = (
        "import json, sys; from engine.tasks.run_preview import *; "
        "print(to_json(RunPreview(stage='done', reward=json.loads(sys.stdin.readline())['prompt']['name'])))"
    )
    job = PreviewJob(CONFIG, command=code(text))
    jobs.append(job)
    assert job.wait(PATIENCE)
    assert job.latest.reward == CONFIG.prompt.name


@pytest.mark.parametrize(
    ("limits", "words"),
    [({"limit": 0.2}, "took longer than 0.2 s"), ({"unwanted": 0.2}, "Nobody waited")],
)
def test_a_job_that_takes_too_long_or_is_not_asked_for_is_killed_with_its_children(
    jobs: list[PreviewJob], limits: dict[str, float], words: str
) -> None:
    job = PreviewJob(CONFIG, command=code(HANGS), **limits)
    jobs.append(job)
    assert job.wait(PATIENCE)
    assert job.trouble is not None
    assert words in job.trouble
    assert gone(job.pid)


def test_a_cancelled_job_is_gone_with_its_children(jobs: list[PreviewJob]) -> None:
    job = PreviewJob(CONFIG, command=code(HANGS))
    jobs.append(job)
    grandchild = int(first_word(job).error or 0)
    assert psutil.pid_exists(grandchild)
    job.cancel()
    assert not job.running
    assert gone(job.pid)
    assert gone(grandchild)


def test_a_process_that_fails_says_why(jobs: list[PreviewJob]) -> None:
    job = PreviewJob(CONFIG, command=code("raise SystemError('out of luck')"))
    jobs.append(job)
    assert job.wait(PATIENCE)
    assert job.trouble == "The preview's process ended with 1. SystemError: out of luck"


def test_equal_previews_are_worked_out_once_and_what_was_dropped_is_begun_anew(
    jobs: list[PreviewJob], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Hanging(PreviewJob):
        def __init__(self, config) -> None:
            super().__init__(config, command=code(HANGS))
            jobs.append(self)

    monkeypatch.setattr("dashboard.data.preview.PreviewJob", Hanging)
    previews = Previews()
    first = previews.start("a", CONFIG)
    assert previews.start("a", CONFIG) is first
    previews.drop("a")
    assert not first.running
    assert previews.find("a") is None
    assert previews.start("a", CONFIG) is not first


def test_a_key_changes_with_what_matters_and_with_the_file_and_not_with_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("{}\n")
    base = {"task.name": "gsm8k", "task.path": str(file)}
    key = preview_key(parse_config(base))
    assert preview_key(parse_config({**base, "learning_rate": 1e-3, "grpo.steps": 7})) == key
    changes = [{"seed": 1}, {"prompt.name": "minimal"}, {"evaluation.size": 3}, {"task.overlap": "keep"}]
    assert len({key, *(preview_key(parse_config({**base, **change})) for change in changes)}) == 5
    file.write_text("{}\n{}\n")
    assert preview_key(parse_config(base)) != key
