import base64
import struct
from pathlib import Path

import pytest

from dashboard.components.plot import Pick
from dashboard.figures.colours import run_colour
from engine.store import queue
from engine.store.database import Database, open_database
from tests.dashboard.open_page import figures, filled, open_page
from tests.store.filled import small_config


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    return open_database()


def test_an_empty_store_says_where_to_start(db) -> None:
    assert "There are no runs yet" in open_page("compare").info[0].value


def test_without_a_choice_it_asks_for_one(db) -> None:
    filled(db)
    assert "Choose the runs to compare" in open_page("compare").info[0].value


def test_runs_that_logged_nothing_are_not_drawn_as_zero(db) -> None:
    at = open_page("compare", runs=queue.enqueue(db, small_config(), name="waits"))
    assert "None of these runs has logged anything" in at.info[0].value
    assert figures(at) == []


def test_four_charts_show_every_run_in_its_own_colour(db) -> None:
    at = open_page("compare", runs=",".join(filled(db)))
    drawn = figures(at)
    assert [text.value for text in at.markdown] == [
        "**Held-out accuracy**",
        "**Reward**",
        "**Entropy**",
        "**Mean length**",
    ]
    for figure in drawn:
        assert [trace["line"]["color"] for trace in figure["data"]] == [run_colour(n) for n in (1, 2, 3)]
    assert drawn[1]["data"][2]["name"] == "high &lt;b&gt;rate&lt;/b&gt; &#36;x&#36; ✕ failed"


def test_the_tables_hold_the_end_of_each_run_and_only_what_differs(db) -> None:
    at = open_page("compare", runs=",".join(filled(db)))
    final, differences = (table.value for table in at.dataframe)
    assert final["status"].tolist() == ["✓ succeeded", "▶ running", "✕ failed"]
    assert final["steps"].tolist() == [20, 12, 15]
    assert final["best"].tolist() == [75.0, 50.0, 25.0]
    assert differences["field"].tolist() == ["optimizer.learning_rate", "seed"]


def test_smoothing_keeps_the_raw_lines(db) -> None:
    at = open_page("compare", runs=",".join(filled(db)))
    at.session_state["compare_smoothing"] = "ema"
    at.run()
    assert not at.exception
    assert [trace["opacity"] for trace in figures(at)[1]["data"]] == [0.28, 1, 0.28, 1, 0.28, 1]


@pytest.mark.parametrize(
    ("axis", "title", "last"), [("tokens", "tokens sampled", 9600.0), ("minutes", "minutes", 1 / 6)]
)
def test_curves_can_lie_against_tokens_and_time(db, axis, title, last) -> None:
    at = open_page("compare", runs=",".join(filled(db)))
    at.session_state["compare_axis"] = axis
    at.run()
    assert not at.exception
    reward = figures(at)[1]
    assert reward["layout"]["xaxis"]["title"]["text"].startswith(title)
    data = base64.b64decode(reward["data"][0]["x"]["bdata"])
    assert struct.unpack("<d", data[-8:])[0] == pytest.approx(last)


def test_non_finite_points_are_said(db) -> None:
    at = open_page("compare", runs=",".join(filled(db)))
    at.session_state["compare_metrics"] = ["loss"]
    at.run()
    (figure,) = figures(at)
    assert figure["layout"]["xaxis"]["title"]["text"] == "step<br><i>3 non-finite points not drawn</i>"


def test_a_run_that_is_gone_from_the_store_is_said(db) -> None:
    first, *_ = filled(db)
    at = open_page("compare", runs=f"{first},gone")
    assert "1 of the runs in the address is not in the store" in at.warning[0].value
    assert at.multiselect[0].value == [first]


def test_a_click_on_a_point_opens_the_groups_of_that_run(db, monkeypatch) -> None:
    first, second, _ = filled(db)
    opened = []
    monkeypatch.setattr(
        "dashboard.components.compare_charts.plot",
        lambda key, version, draw: Pick(f"{second}:line", 7) if key.endswith(":entropy") else None,
    )
    monkeypatch.setattr("dashboard.components.navigation.open_groups", lambda *point: opened.append(point))
    open_page("compare", runs=f"{first},{second}")
    assert opened == [(second, 7)]
