import shlex
from dataclasses import replace

import pytest

from dashboard.components.draft import (
    command,
    differences,
    draft_from_preset,
    draft_from_run,
    field_at,
    seeded,
    with_entry,
    with_new_token,
)
from dashboard.components.duration import duration
from dashboard.components.entry import entry_of, read_entry
from dashboard.components.form import COMMON, help_of, label_of
from dashboard.components.markdown import escape_markdown
from dashboard.components.plan import expected_time, plan_lines
from dashboard.data.pace import Pace
from engine.config import RunConfig, fields, leaves, parse_assignment, parse_config
from engine.errors import FieldProblem
from engine.presets import load_preset, preset_names


@pytest.mark.parametrize("name", preset_names())
def test_a_form_that_nobody_touched_gives_the_preset(name: str) -> None:
    draft = draft_from_preset(name)
    assert draft.checked.problems == ()
    assert draft.checked.config == load_preset(name).config
    assert differences(draft) == {}


def test_what_the_form_shows_reads_back_to_the_same_value() -> None:
    for path, value in leaves(RunConfig()):
        field = field_at(path)
        read = read_entry(field, entry_of(field, value))
        assert read == (list(value) if isinstance(value, tuple) else value), path


@pytest.mark.parametrize(
    ("path", "typed", "value"),
    [
        ("optimizer.learning_rate", "3e-5", 3e-5),
        ("optimizer.learning_rate", " 0.001 ", 1e-3),
        ("grpo.steps", "1_000", 1000),
        ("grpo.steps", "2e2", 200),
        ("grpo.train_batch_size", "", None),
        ("grpo.clip_eps_high", "0.28", 0.28),
    ],
)
def test_numbers_are_read_as_people_write_them(path: str, typed: str, value: object) -> None:
    assert read_entry(field_at(path), typed) == value


@pytest.mark.parametrize(
    ("path", "typed", "message"),
    [
        ("optimizer.learning_rate", "3e", "optimizer.learning_rate=3e is not a number; write it as 1e-4"),
        ("grpo.steps", "1.5", "grpo.steps=1.5 is not a whole number; write it as 100"),
        ("grpo.steps", "", "grpo.steps=(empty) is needed; write it as 100"),
        ("model.threads", "two", "model.threads=two is not a number; write it as 2"),
    ],
)
def test_what_is_no_number_is_said_with_the_way_out(path: str, typed: str, message: str) -> None:
    problem = read_entry(field_at(path), typed)
    assert isinstance(problem, FieldProblem)
    assert problem.message.startswith(message)


def test_a_broken_rule_stands_at_its_field_and_leaves_no_config() -> None:
    draft = with_entry(draft_from_preset("quick-start"), "rollout.rollout_batch_size", "100")
    assert draft.checked.config is None
    assert draft.checked.at("rollout.rollout_batch_size") == (
        "rollout_batch_size=100 is not a multiple of group_size=8; use 96 or 104",
    )
    assert draft.checked.at("rollout.group_size") == ()


def test_a_value_out_of_range_a_missing_name_and_too_many_seeds_are_all_named() -> None:
    draft = with_entry(draft_from_preset("quick-start"), "rollout.temperature", "-1")
    checked = replace(draft, name=" ", seeds="99").checked
    assert [problem.path for problem in checked.problems] == ["name", "seeds", "rollout.temperature"]


def test_a_fork_needs_more_steps_than_its_parent_has_made() -> None:
    draft = draft_from_run(RunConfig(), "abcd2345", 100, "first", "quick-start")
    assert draft.checked.at("grpo.steps") == (
        "grpo.steps=100 leaves nothing to do: the fork goes on after step 100; use at least 101",
    )
    longer = with_entry(draft, "grpo.steps", "120")
    assert longer.checked.problems == ()
    assert with_entry(longer, "model.name", "another").checked.at("model.name") == (
        "model.name=another does not fit the checkpoint, which is of model.name=tiny-math; keep that one",
    )


def test_the_command_gives_the_same_config() -> None:
    draft = draft_from_preset("quick-start")
    for path, entry in {
        "optimizer.learning_rate": "3e-5",
        "task.operators": ["+"],
        "grpo.clip_eps_high": "0.28",
        "evaluation.greedy": False,
        "model.name": "a folder/it's",
        "seed": "7",
    }.items():
        draft = with_entry(draft, path, entry)
    words = shlex.split(command(draft).replace("\\\n", " "))
    assert words[:3] == ["grpo-lab", "launch", "quick-start"]
    overrides = dict(parse_assignment(words[at + 1]) for at, word in enumerate(words) if word == "--set")
    assert load_preset("quick-start", overrides).config == draft.checked.config
    assert "optimizer.learning_rate=3e-5" in words


def test_an_emptied_field_is_set_to_null_by_the_command() -> None:
    base = parse_config({"grpo.train_batch_size": 64})
    draft = with_entry(draft_from_run(base, "abcd2345", 10, "first", None), "grpo.train_batch_size", "")
    assert command(draft).splitlines() == [
        "grpo-lab fork abcd2345@10 \\",
        "  --set grpo.train_batch_size=null",
    ]


def test_seeds_count_up_from_the_one_in_the_form() -> None:
    draft = replace(with_entry(draft_from_preset("quick-start"), "seed", "5"), seeds="3")
    assert [(name, config.seed) for name, config in seeded(draft)] == [
        ("quick-start-seed-5", 5),
        ("quick-start-seed-6", 6),
        ("quick-start-seed-7", 7),
    ]
    assert command(draft).splitlines()[:3] == [
        "grpo-lab launch quick-start \\",
        "  --set seed=5 \\",
        "  --name quick-start-seed-5",
    ]
    assert command(with_entry(draft, "seed", "0")) == "grpo-lab launch quick-start \\\n  --seeds 3"
    assert [name for name, _ in seeded(replace(draft, seeds="1"))] == ["quick-start"]


def test_another_launch_has_another_token_and_the_same_entries() -> None:
    draft = draft_from_preset("quick-start")
    assert with_new_token(draft).token != draft.token
    assert with_new_token(draft).entries == draft.entries


def test_every_field_has_a_label_and_a_help_with_its_sentence_and_path() -> None:
    paths = {field.path for field in fields()}
    assert set(COMMON) <= paths
    for field in fields():
        assert label_of(field)
        assert field.sentence in help_of(field)
        assert field.path in help_of(field)


def test_the_plan_counts_batches_updates_and_evaluations() -> None:
    config = parse_config({"grpo.train_batch_size": 64, "epochs_per_rollout_batch": 2, "evaluation.every": 30})
    prompts, updates, micro, totals, evaluations = plan_lines(config)
    assert prompts.startswith("**16** prompts per step × **8** completions = 128")
    assert updates.startswith("**4** optimizer steps per rollout batch (off-policy after the first), 64 completions")
    assert micro.startswith("Micro-batch of **64** completions")
    assert totals == "**12,800** completions in 100 steps"
    # At steps 0, 30, 60, 90 and 100.
    assert evaluations.startswith("**5** evaluations")
    # A fork after step 60: at 60, 90 and 100.
    assert plan_lines(config, 60)[3:] == [
        "**5,120** completions in 40 steps",
        "**3** evaluations of 1,024 held-out problems (sampled and greedy)",
    ]


def test_the_plan_of_a_run_with_sft_counts_both_phases() -> None:
    both = parse_config({"sft.steps": 25, "grpo.steps": 40, "evaluation.every": 30})
    sft, *_, totals, evaluations = plan_lines(both)
    assert sft == "**25** steps of SFT on the task's demonstrations, before GRPO"
    assert totals == "**5,120** completions in 40 steps"
    # At steps 0, 25, 30, 60 and 65.
    assert evaluations.startswith("**5** evaluations")
    # A fork after step 35 has no SFT before it: at 35, 60 and 65.
    assert plan_lines(both, 35)[3:] == [
        "**3,840** completions in 30 steps",
        "**3** evaluations of 1,024 held-out problems (sampled and greedy)",
    ]
    pure = parse_config({"sft.steps": 1, "grpo.steps": 0, "sft.path": "/data/some.jsonl"})
    assert plan_lines(pure) == [
        "**1** step of SFT on the file's demonstrations, and nothing else",
        "**2** evaluations of 1,024 held-out problems (sampled and greedy)",
    ]
    assert "about **1 min 21 s**" in expected_time(both, Pace(1.25, 1))


def test_a_fork_of_a_run_with_sft_counts_its_steps() -> None:
    draft = draft_from_run(parse_config({"sft.steps": 20, "grpo.steps": 60}), "abcd2345", 80, "first", None)
    assert draft.checked.at("grpo.steps") == (
        "grpo.steps=60 leaves nothing to do: the fork goes on after step 80; use at least 61",
    )
    assert with_entry(draft, "sft.steps", "21").checked.problems == ()


def test_what_a_fork_began_with_is_kept() -> None:
    draft = draft_from_run(RunConfig(), "abcd2345", 40, "first", None)
    assert with_entry(draft, "model.init_from", "/x").checked.at("model.init_from") == (
        "model.init_from=/x does not fit the checkpoint, which is of model.init_from=empty; keep that one",
    )


def test_the_expected_time_comes_from_runs_like_it_or_says_that_there_is_none() -> None:
    config = RunConfig()
    assert "no run like it yet" in expected_time(config, None)
    assert "about **2 min 05 s** (1.2 s a step, the mean of 1 run like it)" in expected_time(config, Pace(1.25, 1))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, ""),
        (float("nan"), ""),
        (-3, "0 s"),
        (59.4, "59 s"),
        (125, "2 min 05 s"),
        (3600, "1 h 00 min"),
        (2e5, "2 d 8 h"),
    ],
)
def test_durations_in_words(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


def test_markdown_in_names_is_escaped() -> None:
    assert escape_markdown("**b** [x](y) <i> :red[z]\n$1$") == (r"\*\*b\*\* \[x\]\(y\) \<i\> \:red\[z\] \$1\$")
