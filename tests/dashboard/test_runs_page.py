from datetime import UTC, datetime

from streamlit.testing.v1 import AppTest

from dashboard.components.launch import launch
from engine.store import queue
from engine.store.database import Database
from engine.store.reads import get_run, list_runs
from tests.dashboard.open_page import filled, open_page
from tests.store.filled import small_config


def choose(at: AppTest, *names: str) -> AppTest:
    """Tick the rows of the runs with these names."""
    listed = list(at.dataframe[0].value["name"])
    rows = [listed.index(name) for name in names]
    at.session_state["runs_table"] = {"selection": {"rows": rows, "columns": [], "cells": []}}
    at.run()
    assert not at.exception
    return at


def button(at: AppTest, label: str):
    return next(each for each in at.button if each.label == label)


def test_an_empty_store_offers_one_button_and_says_what_it_does(db: Database) -> None:
    at = open_page("runs")
    assert [each.label for each in at.button] == ["Start the quick start"]
    assert any("100 GRPO steps, about two minutes" in each.value for each in at.markdown)
    assert "No worker is running" in at.warning[0].value


def test_the_quick_start_queues_one_run_and_opens_its_page(db: Database) -> None:
    at = open_page("runs")
    at.button[0].click().run()
    assert not at.exception
    (run,) = list_runs(db)
    assert (run.name, run.preset, run.status) == ("quick-start", "quick-start", "queued")
    assert at.query_params["run"] == run.run_id


def test_the_quick_start_pressed_twice_on_one_page_queues_once(db: Database) -> None:
    at = open_page("runs")
    draft = at.session_state["quick_start_draft"]
    at.button[0].click().run()
    # The second press carries the token that the first page was drawn with.
    assert launch(db, draft) == [run.run_id for run in list_runs(db)]


def test_a_filled_store_shows_what_runs_first(db: Database) -> None:
    filled(db)
    at = open_page("runs")
    table = at.dataframe[0].value
    assert list(table["status"]) == ["▶ running", "✕ failed", "✓ succeeded"]
    assert table["name"].tolist()[1] == "high <b>rate</b> $x$"
    assert all(len(line) for line in table["reward"])
    assert at.caption[0].value == "1 running · 0 waiting · 2 ended"


def test_nothing_can_be_done_until_a_run_is_chosen_and_each_button_says_so(db: Database) -> None:
    filled(db)
    at = open_page("runs")
    assert {each.label for each in at.button} == {"Open", "Compare", "Fork", "Stop", "Resume", "Archive"}
    assert all(each.disabled for each in at.button)
    assert all(each.help.startswith("Choose") for each in at.button)


def test_a_worker_that_lives_needs_no_notice_and_waiting_runs_are_counted(db: Database) -> None:
    queue.enqueue(db, small_config(), name="waits")
    assert "1 run waits" in open_page("runs").warning[0].value
    queue.worker_heartbeat(db, "w", "host", 1, datetime.now(UTC))
    assert not open_page("runs").warning


def test_a_running_run_can_be_stopped(db: Database) -> None:
    filled(db)
    at = choose(open_page("runs"), "quick-start")
    button(at, "Stop").click().run()
    assert not at.exception
    assert "stopping" in {run.status for run in list_runs(db)}


def test_a_failed_run_can_be_resumed_and_the_choice_follows_it_up_the_list(db: Database) -> None:
    *_, failed = filled(db)
    at = choose(open_page("runs"), "high <b>rate</b> $x$")
    queue.enqueue(db, small_config(), name="newcomer")
    at.run()
    button(at, "Resume").click().run()
    assert not at.exception
    run = get_run(db, failed)
    assert run is not None
    assert run.status == "queued"
    assert button(at, "Resume").disabled
    assert not button(at, "Stop").disabled
    assert at.session_state["runs_selected"] == [failed]


def test_two_runs_are_compared_and_one_is_not(db: Database) -> None:
    _, running, failed = filled(db)
    at = open_page("runs")
    choose(at, "high <b>rate</b> $x$")
    assert button(at, "Compare").help == "Choose two or more runs to compare"
    at.session_state["runs_table"] = {"selection": {"rows": [0, 1], "columns": [], "cells": []}}
    at.run()
    button(at, "Compare 2").click().run()
    assert not at.exception
    assert at.query_params["runs"] == f"{running},{failed}"


def test_opening_goes_to_the_page_of_the_run(db: Database) -> None:
    *_, failed = filled(db)
    at = choose(open_page("runs"), "high <b>rate</b> $x$")
    button(at, "Open").click().run()
    assert not at.exception
    assert at.query_params["run"] == failed


def test_forking_fills_the_form_from_the_newest_checkpoint(db: Database) -> None:
    *_, failed = filled(db)
    at = choose(open_page("runs"), "high <b>rate</b> $x$")
    button(at, "Fork").click().run()
    assert not at.exception
    assert at.title[0].value == "New run"
    assert at.query_params["fork"] == failed
    assert at.query_params["step"] == "10"


def test_an_archived_run_leaves_the_list_and_can_be_brought_back(db: Database) -> None:
    *_, failed = filled(db)
    at = choose(open_page("runs"), "high <b>rate</b> $x$")
    button(at, "Archive").click().run()
    assert "high <b>rate</b> $x$" not in list(at.dataframe[0].value["name"])
    at.toggle(key="show_archived").set_value(True).run()
    choose(at, "high <b>rate</b> $x$")
    button(at, "Unarchive").click().run()
    assert not at.exception
    run = get_run(db, failed)
    assert run is not None
    assert not run.archived


def test_a_store_whose_runs_are_all_archived_says_so(db: Database) -> None:
    run_id = queue.enqueue(db, small_config(), name="only")
    queue.request_stop(db, run_id)
    queue.archive(db, run_id)
    at = open_page("runs")
    assert not at.button
    assert "Every run is archived." in [each.value for each in at.caption]


def test_asking_twice_for_what_has_changed_meanwhile_is_said_and_breaks_nothing(db: Database) -> None:
    *_, failed = filled(db)
    at = choose(open_page("runs"), "high <b>rate</b> $x$")
    queue.requeue(db, failed)
    # The click was made on a button that was drawn before the run went back into the queue.
    button(at, "Resume").click().run()
    assert not at.exception
    assert button(at, "Resume").disabled
