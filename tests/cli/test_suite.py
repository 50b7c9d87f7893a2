"""`suite` on a store of its own, with runs that end as told."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.cli import manage
from engine.store import queue, reads, writes
from engine.store.database import Database
from engine.types import EvaluationRecord

Ask = Callable[..., Any]
Invoke = Callable[..., Any]
Ends = Callable[..., None]

CLIPS = """
question: "Does a clip help?"
base: quick-start
baseline: clip
seeds: 2
arms:
  clip: {grpo: {epochs_per_rollout_batch: 2}}
  none: {grpo: {epochs_per_rollout_batch: 2, loss_type: grpo_no_clip}}
"""


@pytest.fixture
def clips(tmp_path: Path) -> str:
    (tmp_path / "clips.yaml").write_text(CLIPS)
    return str(tmp_path / "clips.yaml")


@pytest.fixture
def runs_end(monkeypatch: pytest.MonkeyPatch) -> Ends:
    """Let the runs that are waited for end one after the other, each with a status and a last accuracy."""

    def end_as(*ends: tuple[Any, float], interrupted: bool = False) -> None:
        def wait_for(db: Database, run_ids: Sequence[str], _out: object) -> bool:
            for run_id, (status, accuracy) in zip(run_ids, ends, strict=True):
                claim = queue.claim(db, run_id, worker_id="w", host="here", now=datetime.now(UTC))
                assert claim is not None
                for step, share in ((0, 0.1), (100, accuracy)):
                    values = {"accuracy": share}
                    writes.write_evaluation(db, run_id, EvaluationRecord(step, "validation", "sampled", 1.0, values))
                queue.attempt_ended(db, claim.attempt_id, outcome=status, seconds=30.0)
                queue.transition(db, run_id, status)
            return not interrupted

        monkeypatch.setattr(manage, "wait_for", wait_for)

    return end_as


class TestQueue:
    def test_each_arm_comes_once_before_any_comes_again(self, db: Database, ask: Ask, clips: str) -> None:
        document = ask("suite", clips)
        runs = sorted(reads.list_runs(db), key=lambda run: run.ordinal)
        assert [run.name for run in runs] == [
            "clips/clip/seed-0",
            "clips/none/seed-0",
            "clips/clip/seed-1",
            "clips/none/seed-1",
        ]
        assert [run.seed for run in runs] == [run.run_config().seed for run in runs] == [0, 0, 1, 1]
        assert {(run.status, run.preset) for run in runs} == {("queued", "quick-start")}
        assert runs[0].arm == runs[2].arm != runs[1].arm == runs[3].arm
        assert [[each["run_id"] for each in arm["runs"]] for arm in document["arms"]] == [
            [runs[0].run_id, runs[2].run_id],
            [runs[1].run_id, runs[3].run_id],
        ]

    def test_the_number_of_seeds_and_fields_of_every_arm_can_be_set(self, db: Database, ask: Ask) -> None:
        ask("suite", "recipes", "--seeds", "1", "--set", "n_grpo_steps=20", "--set", "grpo.train_batch_size=64")
        runs = reads.list_runs(db)
        assert sorted(run.preset or "" for run in runs) == ["cispo", "dapo", "dr_grpo", "grpo", "gspo", "rloo"]
        assert {run.total_steps for run in runs} == {20}
        assert {run.run_config().train_batch_size for run in runs} == {64}

    def test_before_a_run_has_ended_there_is_nothing_to_compare(self, invoke: Invoke, ask: Ask, clips: str) -> None:
        document = ask("suite", clips)
        assert (document["suite"], document["question"], document["baseline"]) == ("clips", "Does a clip help?", "clip")
        assert [(arm["arm"], arm["final_accuracies"], arm["mean"], arm["difference"]) for arm in document["arms"]] == [
            ("clip", [None, None], None, None),
            ("none", [None, None], None, None),
        ]
        result = invoke("suite", clips)
        assert "0 of 2" in result.stdout
        assert "preliminary" in result.stdout
        assert result.stderr == "Queued 4 runs; `grpo-lab ls` shows how far they are.\n"

    def test_one_faulty_arm_keeps_all_from_the_queue(self, db: Database, ask: Ask, tmp_path: Path) -> None:
        (tmp_path / "bad.yaml").write_text(CLIPS.replace("grpo_no_clip", "clipless"))
        document = ask("suite", str(tmp_path / "bad.yaml"), exit_code=2)
        assert [problem["path"] for problem in document["problems"]] == ["grpo.loss_type"]
        assert document["error"].endswith("(arm none)")
        assert reads.list_runs(db) == []


class TestComparison:
    def test_an_arm_has_its_mean_and_the_difference_to_the_baseline(self, ask: Ask, clips: str, runs_end: Ends) -> None:
        runs_end(("succeeded", 0.5), ("succeeded", 0.25), ("succeeded", 0.75), ("succeeded", 0.5))
        clip, none = ask("suite", clips, "--wait")["arms"]
        assert (clip["final_accuracies"], clip["mean"], clip["difference"]) == ([0.5, 0.75], 0.625, 0.0)
        assert (none["final_accuracies"], none["mean"], none["difference"]) == ([0.25, 0.5], 0.375, -0.25)
        assert [run["status"] for run in clip["runs"]] == ["succeeded", "succeeded"]
        assert clip["runs"][1]["eval"] == {"first": 0.1, "best": 0.75, "best_step": 100, "last": 0.75}

    def test_a_run_that_failed_has_no_final_accuracy_and_is_exit_code_1(
        self, invoke: Invoke, ask: Ask, clips: str, runs_end: Ends
    ) -> None:
        runs_end(("succeeded", 0.5), ("failed", 0.25), ("succeeded", 0.75), ("succeeded", 0.5))
        clip, none = ask("suite", clips, "--wait", exit_code=1)["arms"]
        assert (none["final_accuracies"], none["mean"], none["difference"]) == ([None, 0.5], 0.5, -0.125)
        assert clip["mean"] == 0.625

    def test_without_a_baseline_there_is_no_difference(self, ask: Ask, clips: str, runs_end: Ends) -> None:
        runs_end(("lost", 0.5), ("succeeded", 0.25), ("stopped", 0.75), ("succeeded", 0.5))
        clip, none = ask("suite", clips, "--wait", exit_code=1)["arms"]
        assert (clip["mean"], clip["difference"]) == (None, None)
        assert (none["mean"], none["difference"]) == (0.375, None)

    def test_the_table_has_a_line_per_arm_and_marks_the_baseline(
        self, invoke: Invoke, clips: str, runs_end: Ends
    ) -> None:
        runs_end(("succeeded", 0.5), ("succeeded", 0.25), ("succeeded", 0.75), ("failed", 0.5))
        lines = invoke("suite", clips, "--wait", exit_code=1).stdout.splitlines()
        words = [line.split() for line in lines]
        assert lines[0].rstrip() == "clips: Does a clip help?"
        assert ["clip", "(baseline)", "2", "of", "2", "50.0%", "75.0%", "62.5%", "–", "1:00"] in words
        assert ["none", "1", "of", "2", "25.0%", "–", "25.0%", "-37.5", "pp", "1:00"] in words
        assert any(line.startswith("preliminary: fewer than 3 runs") for line in lines)

    def test_three_runs_in_every_arm_are_no_longer_preliminary(
        self, invoke: Invoke, clips: str, runs_end: Ends
    ) -> None:
        runs_end(*[("succeeded", 0.5)] * 6)
        shown = invoke("suite", clips, "--seeds", "3", "--wait").stdout
        assert "3 of 3" in shown
        assert "preliminary" not in shown

    def test_ctrl_c_while_waiting_is_exit_code_130(self, ask: Ask, clips: str, runs_end: Ends) -> None:
        runs_end(*[("stopped", 0.5)] * 4, interrupted=True)
        assert len(ask("suite", clips, "--wait", exit_code=130)["arms"]) == 2


class TestList:
    @pytest.mark.parametrize("arguments", [[], ["--list"]])
    def test_the_suites_are_listed_with_their_questions(
        self, db: Database, invoke: Invoke, ask: Ask, arguments: list[str]
    ) -> None:
        listed = {each["suite"]: each for each in ask("suite", *arguments)}
        assert listed["recipes"]["arms"] == ["grpo", "dr_grpo", "dapo", "gspo", "cispo", "rloo"]
        assert listed["kl-or-clip"]["baseline"] == "clip"
        shown = " ".join(invoke("suite", *arguments).stdout.split())
        assert all(name in shown for name in listed)
        assert reads.list_runs(db) == []

    @pytest.mark.parametrize(
        ("arguments", "idle"), [(["recipes", "--list"], "NAME"), (["--wait", "--seeds", "2"], "--seeds, --wait")]
    )
    def test_what_only_a_launch_can_use_is_refused(
        self, db: Database, invoke: Invoke, arguments: list[str], idle: str
    ) -> None:
        result = invoke("suite", *arguments, exit_code=2)
        assert result.stderr.startswith(f"{idle} is for a launch, and this lists the suites; give a NAME without")
        assert reads.list_runs(db) == []

    def test_an_unknown_suite_is_refused(self, ask: Ask) -> None:
        document = ask("suite", "nonsense", exit_code=2)
        assert document["error"].startswith("suite=nonsense does not exist; use one of finqa-contexts, kl-or-clip")
