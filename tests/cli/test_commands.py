"""Commands on a store of their own, without processes."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.config import parse_config
from engine.store import queue, reads, writes
from engine.store.database import Database
from engine.store.records import Run
from engine.types import EvaluationRecord, StepRecord

Ask = Callable[..., Any]


@pytest.fixture
def run_id(db: Database) -> str:
    return queue.enqueue(db, parse_config({"grpo": {"steps": 10}}), name="first light")


def run_of(db: Database, run_id: str) -> Run:
    run = reads.get_run(db, run_id)
    assert run is not None
    return run


def end(db: Database, run_id: str, status: Any = "failed", error: str | None = None) -> None:
    claim = queue.claim(db, run_id, worker_id="w", host="here", now=datetime.now(UTC))
    assert claim is not None
    queue.attempt_ended(db, claim.attempt_id, outcome=status, seconds=2.5)
    queue.transition(db, run_id, status, error=error)


class TestPreview:
    SMALL = ("--set", "rollout_batch_size=8", "--set", "group_size=2", "--set", "evaluation.size=2", "--n", "1")

    def test_it_shows_the_first_prompts_and_queues_nothing(
        self, db: Database, ask: Ask, invoke: Callable[..., Any]
    ) -> None:
        document = ask("preview", "quick-start", *self.SMALL)
        (row,) = document["rows"]
        assert "".join(token["text"] for token in row["tokens"]) == row["prompt"]
        assert document["gold"]["faulty"] == 0
        shown = invoke("preview", "quick-start", *self.SMALL).stdout
        assert row["problem_id"] in shown
        assert "grade themselves correct" in shown
        assert reads.list_runs(db) == []

    def test_what_would_be_refused_ends_with_exit_code_2(self, db: Database, ask: Ask, tmp_path: Path) -> None:
        data = tmp_path / "mine.jsonl"
        data.write_text("".join(f'{{"question": "What is {n}?", "answer": "#### "}}\n' for n in range(20)))
        given = ("preview", "quick-start", *self.SMALL, "--set", "task.name=gsm8k", "--set", f"task.path={data}")
        document = ask(*given, exit_code=2)
        assert (document["error"], document["gold"]["faulty"], document["gold"]["left_out"]) == (None, 20, False)
        left = ask(*given, "--set", "task.gold_faults=leave_out", exit_code=2)
        assert "no training problems" in left["error"]


class TestLaunch:
    def test_it_queues_a_preset_with_changed_fields(self, db: Database, ask: Ask) -> None:
        (document,) = ask(
            *("launch", "quick-start", "--set", "optimizer.learning_rate=1e-3"),
            *("--set", "n_grpo_steps=20", "--set", "num_generations=4", "--seed", "7"),
        )
        run = run_of(db, document["run_id"])
        config = run.run_config()
        assert (run.status, run.name, run.preset, run.seed) == ("queued", "quick-start", "quick-start", 7)
        assert (config.optimizer.learning_rate, config.grpo.steps, config.rollout.group_size) == (1e-3, 20, 4)
        assert document["status"] == "queued"

    def test_seeds_make_one_run_each_with_names_that_tell_them_apart(self, db: Database, ask: Ask) -> None:
        documents = ask("launch", "no-baseline", "--seeds", "3", "--name", "bare")
        assert [(each["name"], each["seed"]) for each in documents] == [
            ("bare-seed-0", 0),
            ("bare-seed-1", 1),
            ("bare-seed-2", 2),
        ]
        assert len({run.arm for run in reads.list_runs(db)}) == 1

    def test_every_fault_is_named_on_its_line_and_nothing_is_queued(
        self, db: Database, invoke: Callable[..., Any], ask: Ask
    ) -> None:
        faults = ["--set", "rollout.rollout_batch_size=100", "--set", "optimizer.warmup_steps=200"]
        result = invoke("launch", "quick-start", *faults, exit_code=2)
        assert result.stdout == ""
        assert result.stderr.splitlines() == [
            "rollout_batch_size=100 is not a multiple of group_size=8; use 96 or 104",
            "warmup_steps=200 is above grpo.steps=100; use at most 100",
        ]
        document = ask("launch", "quick-start", *faults, exit_code=2)
        assert document["error"] == result.stderr.strip()
        paths = [problem["path"] for problem in document["problems"]]
        assert paths == ["rollout.rollout_batch_size", "optimizer.warmup_steps"]
        assert reads.list_runs(db) == []

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["nonsense"], "preset=nonsense does not exist; use one of quick-start"),
            (["quick-start", "--set", "grpo.stepz=3"], "grpo.stepz=3 is not a field; did you mean grpo.steps"),
            (["quick-start", "--set", "grpo.steps"], "--set grpo.steps has no value; write --set grpo.steps=VALUE"),
            (["quick-start", "--seed", "1", "--seeds", "2"], "seed is given twice: --seeds=2, --seed=1; keep one"),
            (["quick-start", "--seed", "1", "--set", "seed=2"], "seed is given twice: --set seed=2, --seed=1"),
        ],
    )
    def test_a_refused_request_says_what_to_write(
        self, invoke: Callable[..., Any], arguments: list[str], message: str
    ) -> None:
        assert invoke("launch", *arguments, exit_code=2).stderr.startswith(message)


class TestShow:
    def test_it_has_what_scripts_read(self, db: Database, ask: Ask, run_id: str) -> None:
        for step, accuracy in ((0, 0.2), (5, 0.8), (10, 0.7)):
            writes.write_evaluation(
                db, run_id, EvaluationRecord(step, "validation", "sampled", 1.0, {"accuracy": accuracy})
            )
        odd = {"reward": 0.5, "loss": float("nan"), "grad_norm": float("inf"), "entropy": float("-inf")}
        writes.write_step(db, run_id, StepRecord(10, odd))
        end(db, run_id, "succeeded")
        document = ask("show", run_id)
        wanted = {"run_id", "name", "status", "steps", "seconds", "eval", "metrics"}
        assert wanted <= document.keys()
        assert (document["run_id"], document["name"], document["status"]) == (run_id, "first light", "succeeded")
        assert (document["steps"], document["seconds"]) == (10, 2.5)
        assert document["eval"] == {"first": 0.2, "best": 0.8, "best_step": 5, "last": 0.7}
        assert document["metrics"] == {
            "reward": 0.5,
            "loss": "NaN",
            "grad_norm": "Infinity",
            "entropy": "-Infinity",
            "eval/validation/accuracy": 0.7,
        }

    def test_before_the_first_evaluation_there_is_nothing_to_tell(self, ask: Ask, run_id: str) -> None:
        document = ask("show", "first light")
        assert document["eval"] == {"first": None, "best": None, "best_step": None, "last": None}
        assert document["metrics"] == {}

    def test_a_failed_run_is_shown_with_its_error_and_exit_code_0(
        self, db: Database, invoke: Callable[..., Any], ask: Ask, run_id: str
    ) -> None:
        end(db, run_id, "failed", "ValueError: no")
        assert ask("show", run_id)["error"] == "ValueError: no"
        assert "ValueError: no" in invoke("show", run_id).stdout

    def test_an_unknown_run_is_refused(self, ask: Ask) -> None:
        document = ask("show", "nothing", exit_code=2)
        assert document == {
            "error": "run=nothing does not exist; `grpo-lab ls` lists the runs",
            "problems": [],
        }

    def test_a_name_cannot_steer_the_terminal(self, db: Database, invoke: Callable[..., Any]) -> None:
        queue.enqueue(db, parse_config({}), name="\x1b]0;owned\x07 [red]x[/red]")
        for command in (["ls"], ["show", reads.list_runs(db)[0].run_id]):
            shown = invoke(*command).stdout
            assert "\x1b" not in shown
            assert "\x07" not in shown
            assert "[red]x[/red]" in shown


class TestLists:
    def test_an_empty_store_is_an_empty_list(self, invoke: Callable[..., Any], ask: Ask) -> None:
        assert ask("ls") == []
        assert "grpo-lab launch quick-start --wait" in invoke("ls").stdout

    def test_archived_runs_are_hidden_until_asked_for(self, db: Database, ask: Ask, run_id: str) -> None:
        end(db, run_id)
        other = queue.enqueue(db, parse_config({}), name="other")
        assert ask("archive", run_id)["archived"] is True
        assert [each["run_id"] for each in ask("ls")] == [other]
        assert [each["run_id"] for each in ask("ls", "--all")] == [other, run_id]
        assert ask("archive", run_id, "--undo")["archived"] is False
        assert len(ask("ls")) == 2


class TestStopAndResume:
    def test_a_waiting_run_is_stopped_at_once_and_can_be_resumed(self, ask: Ask, run_id: str) -> None:
        assert ask("stop", run_id)["status"] == "stopped"
        (document,) = ask("resume", run_id[:4])
        assert (document["run_id"], document["status"]) == (run_id, "queued")

    def test_a_live_run_is_asked(self, db: Database, ask: Ask, run_id: str) -> None:
        queue.claim(db, run_id, worker_id="w", host="here", now=datetime.now(UTC))
        assert ask("stop", run_id)["status"] == "stopping"
        assert queue.stop_requested(db, run_id)

    def test_a_run_that_has_succeeded_is_not_resumed(self, db: Database, ask: Ask, run_id: str) -> None:
        end(db, run_id, "succeeded")
        document = ask("resume", run_id, exit_code=2)
        assert f"run={run_id} is succeeded and cannot become queued" in document["error"]


class TestFork:
    @pytest.fixture
    def parent(self, db: Database, run_id: str) -> str:
        for step in (5, 10):
            writes.write_checkpoint(db, run_id, step, f"/x/step-{step:06d}", None)
        return run_id

    def test_it_goes_on_from_a_checkpoint_with_changed_fields(self, db: Database, ask: Ask, parent: str) -> None:
        (document,) = ask("fork", f"{parent}@5", "--set", "optimizer.learning_rate=1e-5")
        run = run_of(db, document["run_id"])
        assert (run.parent_run_id, run.parent_step, run.step, run.name) == (parent, 5, 5, "first light@5")
        assert run.run_config().optimizer.learning_rate == 1e-5
        assert document["parent"] == {"run_id": parent, "step": 5}

    @pytest.mark.parametrize("step", ["@7", "@", "", "@last"])
    def test_a_step_without_a_checkpoint_is_refused_with_those_there_are(
        self, ask: Ask, parent: str, step: str
    ) -> None:
        document = ask("fork", f"{parent}{step}", exit_code=2)
        assert document["error"] == (f"fork={parent}{step} names no checkpoint; use one of {parent}@5, {parent}@10")

    def test_a_fork_from_the_last_step_needs_more_steps(self, db: Database, ask: Ask, parent: str) -> None:
        document = ask("fork", f"{parent}@10", exit_code=2)
        assert document["error"] == (
            "grpo.steps=10 leaves nothing to do: the fork goes on after step 10; use at least 11"
        )
        assert ask("fork", f"{parent}@10", "--set", "grpo.steps=20")[0]["total_steps"] == 20

    def test_an_adapter_does_not_fit_a_checkpoint_without_one(self, ask: Ask, parent: str) -> None:
        document = ask("fork", f"{parent}@5", "--set", "lora.rank=8", exit_code=2)
        expected = "lora.rank=8 does not fit the checkpoint, which is of lora.rank=empty; keep that one"
        assert document["error"] == expected

    def test_another_model_does_not_fit_the_checkpoint(self, ask: Ask, parent: str) -> None:
        document = ask("fork", f"{parent}@5", "--set", "model.name=gpt", exit_code=2)
        assert document["problems"] == [
            {
                "path": "model.name",
                "message": "model.name=gpt does not fit the checkpoint, which is of model.name=tiny-math; "
                "keep that one",
            }
        ]

    def test_what_its_parent_began_with_is_not_changed(self, ask: Ask, parent: str) -> None:
        document = ask("fork", f"{parent}@5", "--set", "model.init_from=/x", exit_code=2)
        (problem,) = document["problems"]
        assert problem["path"] == "model.init_from"
        assert "which is of model.init_from=empty; keep that one" in problem["message"]

    def test_its_length_counts_the_steps_of_sft(self, db: Database, ask: Ask, parent: str) -> None:
        assert ask("fork", f"{parent}@10", "--set", "sft.steps=4")[0]["total_steps"] == 14
        document = ask("fork", f"{parent}@10", "--set", "sft.steps=4", "--set", "steps=6", exit_code=2)
        assert document["error"] == (
            "grpo.steps=6 leaves nothing to do: the fork goes on after step 10; use at least 7"
        )


class TestInitFrom:
    @pytest.fixture
    def first(self, db: Database, run_id: str) -> str:
        writes.write_checkpoint(db, run_id, 10, "/x/step-000010", None)
        return run_id

    @pytest.mark.parametrize("command", [("launch", "quick-start"), ("suite", "kl-or-clip", "--seeds", "1")])
    def test_runs_begin_with_a_checkpoint_of_another(
        self, db: Database, ask: Ask, first: str, command: tuple[str, ...]
    ) -> None:
        ask(*command, "--set", "model.init_from=run:first light@10")
        begun = [run for run in reads.list_runs(db) if run.run_id != first]
        assert begun
        assert {(run.step, run.run_config().model.init_from) for run in begun} == {(0, f"run:{first}@10")}

    @pytest.mark.parametrize(
        ("start", "message"),
        [
            ("run:{}@9", "model.init_from=run:{}@9 names no checkpoint; use one of run:{}@10"),
            ("run:zz@9", "model.init_from=run:zz@9: run=zz does not exist; `grpo-lab ls` lists the runs"),
            ("run:{}", "init_from=run:{} names no checkpoint; write run:<id>@<step>, such as run:k7wq2m4x@40"),
        ],
    )
    def test_a_checkpoint_that_is_not_there_is_refused_and_nothing_is_queued(
        self, db: Database, ask: Ask, first: str, start: str, message: str
    ) -> None:
        document = ask("launch", "quick-start", "--set", f"model.init_from={start.format(first)}", exit_code=2)
        assert document["error"].startswith(message.replace("{}", first))
        assert len(reads.list_runs(db)) == 1


class TestDoctor:
    def test_it_names_store_packages_and_the_missing_worker(self, db: Database, ask: Ask, run_id: str) -> None:
        document = ask("doctor")
        assert document["store"]["ok"] is True
        assert document["store"]["runs"] == 1
        assert document["packages"]["torch"] is not None
        assert document["workers"] == []
        assert document["note"].startswith("no worker is running")
        assert document["problems"] == []

    def test_a_store_that_cannot_be_opened_is_a_problem(self, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("GRPO_LAB_DATABASE_URL", "sqlite:////no/such/folder/runs.db")
        document = ask("doctor", exit_code=1)
        assert document["store"] == {"url": "sqlite:////no/such/folder/runs.db", "ok": False}
        assert "the folder /no/such/folder does not exist" in document["problems"][0]


def test_the_commands_load_without_torch() -> None:
    code = "import sys, engine.cli; print({'torch', 'transformers', 'streamlit'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "set()\n"
