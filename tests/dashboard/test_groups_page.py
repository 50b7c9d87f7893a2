from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.completions import advantage_words, completion_columns, completion_table
from engine.config import parse_config
from engine.store import queue, reads, writes
from engine.store.database import Database, open_database
from engine.types import StepRecord
from tests.dashboard.open_page import figures, filled, open_page
from tests.store.filled import fill_run_of_sft, fill_run_with_updates, small_config, step_record


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    return open_database()


def press(at: AppTest, label: str) -> None:
    next(button for button in at.button if button.label == label).click().run()
    assert not at.exception


def address(at: AppTest) -> dict[str, str]:
    return {name: value[0] if isinstance(value, list) else value for name, value in at.query_params.items()}


def test_an_empty_store_says_where_to_start(db) -> None:
    assert "There are no runs yet" in open_page("groups").info[0].value


def test_a_run_without_steps_says_that_groups_will_come(db) -> None:
    run_id = queue.enqueue(db, small_config(), name="waits")
    assert "they appear with the first step" in open_page("groups", run=run_id).info[0].value


def test_a_run_of_sft_alone_says_that_it_has_no_groups(db) -> None:
    run_id = fill_run_of_sft(db, grpo_steps=0)
    assert "This run is SFT alone" in open_page("groups", run=run_id).info[0].value


def test_the_groups_of_a_run_with_sft_begin_behind_it(db) -> None:
    run_id = fill_run_of_sft(db, grpo_steps=2)
    at = open_page("groups", run=run_id, step="1")
    assert "Step 1 has no stored groups; 4 is the nearest that has." in [each.value for each in at.caption]


def test_a_run_that_keeps_no_completions_says_so(db) -> None:
    config = parse_config({**small_config().model_dump(), "logging": {"completions": False}})
    run_id = queue.enqueue(db, config, name="lean")
    assert "logging.completions=false" in open_page("groups", run=run_id).info[0].value


def test_a_group_shows_question_gold_prompt_and_every_completion(db) -> None:
    succeeded, *_ = filled(db)
    at = open_page("groups", run=succeeded, step="2", group="1")
    group = reads.groups(db, succeeded, 2)[1]
    assert at.subheader[0].value.startswith(f"Group 1: {group.n_correct} of 4 right")
    shown = [code.value for code in at.code]
    assert shown[:3] == [group.question, group.gold, group.prompt]
    assert shown[3:] == [each.text for each in reads.completions(db, group.group_id)]


def test_a_hostile_completion_is_shown_as_the_text_it_is(db) -> None:
    succeeded, *_ = filled(db)
    at = open_page("groups", run=succeeded, step="1", group="0")
    text = next(code for code in at.code if "<script>" in code.value)
    for part in ("<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "$x^2$", "**bold**", "[x](javascript:"):
        assert part in text.value
    assert "nul:␀" in text.value
    assert text.language in (None, "", "plaintext")
    rendered = [*at.markdown, *at.caption, *at.subheader, *at.title, *at.info]
    assert not any("<script>" in element.value or "javascript:" in element.value for element in rendered)
    assert not any(element.proto.allow_html for element in at.markdown)


def test_advantages_are_drawn_as_signed_bars(db) -> None:
    succeeded, *_ = filled(db)
    at = open_page("groups", run=succeeded, step="1", group="0")
    (bars,) = figures(at)[0]["data"]
    group = reads.groups(db, succeeded, 1)[0]
    assert bars["x"] == [each.advantage for each in reads.completions(db, group.group_id)]


def test_a_step_without_groups_leads_to_the_nearest(db) -> None:
    succeeded, *_ = filled(db)
    at = open_page("groups", run=succeeded, step="99")
    assert any("20 is the nearest" in caption.value for caption in at.caption)


def test_steps_and_groups_are_walked_by_buttons(db) -> None:
    succeeded, *_ = filled(db)
    at = open_page("groups", run=succeeded, step="2")
    press(at, "Group ▶")
    assert address(at) == {"run": succeeded, "step": "2", "group": "1"}
    press(at, "Step ▶")
    assert address(at) == {"run": succeeded, "step": "3"}
    assert next(button for button in at.button if button.label == "◀ Group").disabled


def test_a_filter_without_groups_says_so(db) -> None:
    succeeded, *_ = filled(db)
    kinds = {step: {group.kind for group in reads.groups(db, succeeded, step)} for step in range(1, 21)}
    step = next(step for step, present in kinds.items() if "all_wrong" not in present)
    at = open_page("groups", run=succeeded, step=str(step))
    at.session_state["group_filter"] = "all wrong"
    at.run()
    assert not at.exception
    assert any("is all wrong" in info.value for info in at.info)


def test_a_live_run_is_followed_until_a_step_is_chosen(db) -> None:
    _, running, _ = filled(db)
    at = open_page("groups", run=running)
    assert at.toggle[0].value is True
    at = open_page("groups", run=running, step="5")
    assert at.toggle[0].value is False
    writes.write_step(db, running, StepRecord(13, {"reward": 0.5}))
    at.run()
    assert at.select_slider[0].value == 5
    at.toggle[0].set_value(True).run()
    assert address(at) == {"run": running}
    assert at.select_slider[0].value == 12  # Step 13 has no groups.


def test_tables_hold_previews_of_at_most_300_characters(db) -> None:
    succeeded, *_ = filled(db)
    group = reads.groups(db, succeeded, 1)[0]
    first = reads.completions(db, group.group_id)[0]
    long = replace(first, text="x" * 100_000, answer="y" * 1_000)
    table = completion_table([long])
    assert (len(table["text"][0]), len(table["answer"][0])) == (300, 60)


def test_every_part_of_the_rewards_is_a_column_with_a_title_and_a_tooltip(db) -> None:
    succeeded, *_ = filled(db)
    first, second = reads.completions(db, reads.groups(db, succeeded, 1)[0].group_id)[:2]
    costs = {"placebo": 1.0, "length": -0.1, "repetition": 0.0, "overlong": -0.5}
    table = completion_table([replace(first, reward_parts=costs), replace(second, reward_parts={"mine": 2.0})])
    parts = [name for name in table.columns if name.startswith("part:")]
    assert parts == ["part:placebo", "part:length", "part:repetition", "part:overlong", "part:mine"]
    assert (table["part:length"][0], table["part:mine"][1]) == (-0.1, 2.0)
    columns = completion_columns(table.columns)
    assert [columns[part]["label"] for part in parts] == [
        "Placebo",
        "Length cost",
        "Repetition cost",
        "Overlong",
        "mine",
    ]
    assert all(columns[part]["help"].startswith("Reward part") for part in parts)


def test_the_advantage_is_explained_with_the_numbers_of_the_group(db) -> None:
    succeeded, *_ = filled(db)
    group = replace(reads.groups(db, succeeded, 1)[0], kind="mixed", reward_mean=0.25, reward_std=0.5)
    grpo = {"baseline": "group_mean", "use_std_normalization": True, "advantage_eps": 1e-6}
    assert advantage_words(group, {"grpo": grpo}).startswith("advantage = (reward − 0.25) / (0.5 + 1e-06)")
    plain = advantage_words(group, {"grpo": grpo | {"use_std_normalization": False}})
    assert plain == "advantage = reward − 0.25 (the group's mean)"
    raw = {"baseline": "none", "scale": "none"}
    assert "is its reward" in advantage_words(group, {"grpo": raw})
    assert "correct completion has an advantage of 1" in advantage_words(
        group, {"grpo": raw | {"learn_from": "correct"}}
    )
    assert "exactly 0" in advantage_words(replace(group, kind="tied"), {"grpo": grpo})


@pytest.mark.parametrize(
    ("baseline", "scale", "words"),
    [
        ("group_mean", "group_std", "(reward − 0.25) / (0.5 + 1e-06): the group's mean and population std"),
        ("group_mean", "batch_std", "(reward − 0.25) / (std of the batch + 1e-06): the group's mean and the popul"),
        ("leave_one_out", "none", "(reward − 0.25) · 4/3 (the distance to the mean of the group's others)"),
        ("leave_one_out", "group_std", "(reward − 0.25) · 4/3 / (0.5 + 1e-06): the distance"),
        ("none", "group_std", "reward / (0.5 + 1e-06): the group's population std"),
        ("none", "batch_std", "reward / (std of the batch + 1e-06): the population std of all rewards of the step"),
    ],
)
def test_every_advantage_is_explained_by_its_own_formula(db, baseline, scale, words) -> None:
    succeeded, *_ = filled(db)
    group = replace(reads.groups(db, succeeded, 1)[0], kind="mixed", reward_mean=0.25, reward_std=0.5)
    grpo = {"baseline": baseline, "scale": scale, "std": "population", "advantage_eps": 1e-6}
    assert advantage_words(group, {"grpo": grpo}, graded=4).startswith(f"advantage = {words}")
    known = advantage_words(group, {"grpo": grpo}, graded=4, batch_std=0.25)
    assert ("(0.25 + 1e-06)" in known) == (scale == "batch_std")


def test_the_std_of_the_batch_is_that_of_the_groups_own_step(db) -> None:
    run_id = queue.enqueue(db, parse_config({"scale": "batch_std"}), name="batch std")
    for step in (1, 2):
        record = step_record(step, 0.5, Random(0))
        mixed = [group for group in record.groups if group.kind == "mixed"]
        writes.write_step(db, run_id, replace(record, metrics={"reward_std/batch": step / 4}, groups=mixed))
    at = open_page("groups", run=run_id, step="1")
    assert not at.exception
    assert any("(0.25 + 1e-06)" in caption.value for caption in at.caption)


def test_a_group_left_out_by_dynamic_sampling_is_marked_in_list_and_detail(db) -> None:
    run_id = fill_run_with_updates(db)
    at = open_page("groups", run=run_id, step="2", group="3")
    assert at.dataframe[0].value["kind"].tolist()[-1].endswith(", left out")
    assert not any("left out" in kind for kind in at.dataframe[0].value["kind"].tolist()[:-1])
    assert at.subheader[0].value.endswith(", left out")
    assert "dynamic sampling drew the group" in at.subheader[0].help
    kept = open_page("groups", run=run_id, step="2", group="0")
    assert "left out" not in kept.subheader[0].value
    assert not kept.subheader[0].help


def test_a_completion_shows_its_divergence_where_there_is_one(db) -> None:
    with_reference = open_page("groups", run=fill_run_with_updates(db), step="1", group="0")
    assert with_reference.dataframe[1].value["kl"].tolist() == [0.5] * 4
    assert sum("KL 0.500 nats" in each.value for each in with_reference.markdown) == 4
    succeeded, *_ = filled(db)
    without = open_page("groups", run=succeeded, step="2", group="0")
    assert "kl" not in without.dataframe[1].value
    assert not any("KL" in each.value for each in without.markdown)
