import sys

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components import regrade_tab
from dashboard.data.regrade_process import start_regrade
from engine.jobs.regrading import carry_out
from engine.rewards.identity import reward_identity
from engine.store import queue, reads, regrades, writes
from engine.store.database import Database
from engine.types import GroupRecord, Problem, StepRecord
from tests.dashboard.open_page import figures, open_page
from tests.store.filled import HOSTILE_TEXT, small_config
from tests.store.regradable import COMPLETIONS, GOLD, completion_record, fill_regradable


def open_tab(run_id: str, tab: str = "Regrade") -> AppTest:
    at = open_page("run", run=run_id)
    at.session_state["run_tab"] = tab
    at.run()
    assert not at.exception
    return at


def words(at: AppTest) -> str:
    shown = [*at.caption, *at.info, *at.warning, *at.error, *at.markdown]
    return "\n".join(element.value for element in shown)


def button(at: AppTest, label: str, key: str = "regrade"):
    return next(each for each in at.button if each.label == label and str(each.key).startswith(key))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a page's own process do the work of a regrading."""
    monkeypatch.setattr(regrade_tab, "start_regrade", carry_out)


def test_a_run_without_completions_says_that_there_is_nothing_to_grade(db: Database) -> None:
    at = open_tab(queue.enqueue(db, small_config(), name="empty"))
    assert "0 completions are stored" in words(at)
    assert button(at, "Regrade").disabled
    assert "No completions of this run are stored" in button(at, "Regrade").help


def test_the_runs_own_reward_is_offered_first_with_its_rule(db: Database) -> None:
    at = open_tab(fill_regradable(db))
    (reward,) = [box for box in at.selectbox if box.label == "Reward"]
    assert reward.options[0] == "answer_tag (this run's)"
    assert "boxed" in reward.options
    assert "math\\-verify" in words(at)


def test_a_regrading_is_shown_as_a_matrix_in_words_and_flip_by_flip(db: Database, at_once) -> None:
    at = open_tab(fill_regradable(db))
    button(at, "Regrade").click().run()
    assert not at.exception
    shown = words(at)
    changed = "18 changed: 6 false negatives, 6 false positives, 6 became unreadable."
    assert f"**Of {COMPLETIONS} completions {changed}**" in shown
    assert [trace["uid"] for figure in figures(at) for trace in figure["data"]] == ["same", "changed"]
    facts = {metric.label: metric.value for metric in at.metric}
    assert (facts["Accuracy now"], facts["Mean reward now"]) == ("50.0 %", "0.5")
    assert "**False negative** · step 1, group 0" in shown
    assert "**Stored: ✕ wrong** · value 0" in shown
    assert "**Now: ✓ correct** · value 1" in shown
    assert {"equal to 7", "stored as wrong", GOLD} <= {code.value for code in at.code}


def test_kind_and_step_narrow_the_list(db: Database, at_once) -> None:
    at = open_tab(fill_regradable(db))
    button(at, "Regrade").click().run()
    kind, step = (next(box for box in at.selectbox if box.label == label) for label in ("Kind", "Step"))
    assert kind.options[:2] == ["all · 18", "false negative · 6"]
    assert step.options == ["all", "1 · 6", "2 · 6", "3 · 6"]
    kind.set_value("false positive").run()
    next(box for box in at.selectbox if box.label == "Step").set_value(2).run()
    assert not at.exception
    assert "**False positive** · step 2, group 0" in words(at)
    assert len(at.dataframe[0].value) == 2


def test_the_group_of_a_flip_is_opened(db: Database, at_once, monkeypatch) -> None:
    run_id = fill_regradable(db)
    opened = []
    monkeypatch.setattr("dashboard.components.flips.open_groups", lambda *point: opened.append(point))
    at = open_tab(run_id)
    button(at, "Regrade").click().run()
    button(at, "Open its group", "flip_group").click().run()
    assert opened == [(run_id, 1, 0)]


def test_what_is_covered_is_what_was_chosen(db: Database, at_once) -> None:
    run_id = fill_regradable(db)
    at = open_tab(run_id)
    at.segmented_control(key=f"regrade_covers:{run_id}").set_value("evaluations").run()
    at.segmented_control(key=f"regrade_amount:{run_id}").set_value("last").run()
    at.number_input(key=f"regrade_last:{run_id}").set_value(1).run()
    button(at, "Regrade").click().run()
    assert not at.exception
    (found,) = reads.regrades(db, run_id)
    assert (found.covers, found.step_from, found.step_to, found.total) == ("evaluations", 3, 3, 4)
    assert "step 3, validation, sampled, answer 0" in words(at)


def test_a_regrading_under_way_shows_how_far_it_is_and_can_be_stopped(db: Database) -> None:
    run_id = fill_regradable(db)
    regrade_id = regrades.begin_regrade(db, run_id, reward="boxed", version="rules 1")
    at = open_tab(run_id)
    assert button(at, "Regrade").disabled
    assert at.get("progress")[-1].proto.text == f"0 of {COMPLETIONS} completions graded again"
    button(at, "Stop").click().run()
    assert regrades.regrade_stop_requested(db, regrade_id)
    assert button(at, "Stop").disabled


def test_a_failed_regrading_says_why_and_an_earlier_one_can_be_opened_again(db: Database) -> None:
    run_id = fill_regradable(db)
    first = regrades.begin_regrade(db, run_id, reward="answer_tag", version="rules 1")
    carry_out(db, first)
    second = regrades.begin_regrade(db, run_id, reward="boxed", version="rules 1")
    regrades.end_regrade(db, second, "failed", "out of <b>luck</b>")
    at = open_tab(run_id)
    assert "out of \\<b\\>luck\\</b\\>" in at.error[0].value
    at.selectbox(key=f"regrade_chosen:{run_id}").set_value(first).run()
    assert not at.exception
    assert "6 false negatives" in words(at)


def test_hostile_text_is_shown_as_it_is(db: Database, at_once) -> None:
    run_id = fill_regradable(db)
    member = completion_record(HOSTILE_TEXT, "correct")
    group = GroupRecord(Problem("p", "<b>?</b>", GOLD), "?", (1,), "tied", 1.0, None, (member,))
    writes.write_step(db, run_id, StepRecord(1, {"reward": 1.0}, [group]))
    at = open_tab(run_id)
    button(at, "Regrade").click().run()
    assert any("<script>alert(1)</script>" in code.value for code in at.code)
    assert "<script>" not in words(at)


def test_the_config_tab_names_the_grader_that_the_run_announced(db: Database) -> None:
    run_id = fill_regradable(db)
    assert "Graded by answer\\_tag. The last" in words(open_tab(run_id, "Config"))
    writes.write_event(db, run_id, "grader", "boxed (rules 0)\nThe old rule.")
    writes.write_event(db, run_id, "grader", reward_identity("answer_tag").message)
    shown = words(open_tab(run_id, "Config"))
    assert "Graded by answer\\_tag \\(rules 1" in shown
    assert "graded by boxed \\(rules 0\\)" in shown


def started(db: Database, *command: str) -> tuple[str, str | None]:
    regrade_id = regrades.begin_regrade(db, fill_regradable(db), reward="answer_tag", version="1")
    thread = start_regrade(db, regrade_id, command) if command else start_regrade(db, regrade_id)
    if thread.ident is not None:
        thread.join(timeout=120)
    found = reads.get_regrade(db, regrade_id)
    return found.status, found.error


def test_the_process_that_a_page_starts_grades(db: Database) -> None:
    assert started(db) == ("finished", None)


def test_a_process_that_dies_without_a_word_is_a_failure_with_what_it_said(db: Database) -> None:
    status, error = started(db, sys.executable, "-c", "raise SystemExit('no room')")
    assert status == "failed"
    assert error == "its process ended with code 1 and left no word; no room"


def test_a_process_that_cannot_be_started_is_a_failure(db: Database) -> None:
    status, error = started(db, "/nowhere/python")
    assert status == "failed"
    assert "cannot be started" in str(error)
