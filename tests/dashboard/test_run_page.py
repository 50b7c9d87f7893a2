from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components import follow
from dashboard.components.charts import groups_note, loss_note
from dashboard.components.plot import Pick
from engine.config import RunConfig, parse_config
from engine.store import queue, writes
from engine.store.database import Database, open_database
from engine.types import StepRecord
from tests.dashboard.open_page import figures, filled, numbers, open_page
from tests.store.filled import fill_run_of_sft, fill_run_with_updates, small_config


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Database:
    monkeypatch.setenv("GRPO_LAB_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    return open_database()


def drawn(at: AppTest) -> dict[str, dict[str, Any]]:
    """Return the figures by the metric of their first trace."""
    return {figure["data"][0]["uid"] if figure["data"] else "": figure for figure in figures(at)}


def words(at: AppTest) -> str:
    shown = [*at.caption, *at.info, *at.warning, *at.error, *at.markdown]
    return "\n".join(element.value for element in shown)


def test_an_empty_store_says_where_to_start(db) -> None:
    at = open_page("run")
    assert "There are no runs yet" in at.info[0].value
    assert not drawn(at)


def test_an_unknown_run_is_named_and_another_is_offered(db) -> None:
    filled(db)
    at = open_page("run", run="no*such")
    assert "no\\*such" in at.error[0].value
    assert at.selectbox[0].options


SPREAD = ("mean", "min", "max")


def test_a_run_shows_its_head_and_ten_charts(db) -> None:
    succeeded, *_ = filled(db)
    at = open_page("run", run=succeeded)
    facts = {metric.label: metric.value for metric in at.metric}
    assert facts["Status"] == "✓ succeeded"
    assert facts["Step"] == "20 of 20"
    assert (facts["First accuracy"], facts["Best accuracy"], facts["Last accuracy"]) == ("25.0 %", "75.0 %", "75.0 %")
    assert "Time left" not in facts
    assert set(drawn(at)) == {
        "reward",
        "groups/all_correct-0",
        "low-0",
        "entropy",
        "grad_norm",
        "loss",
        "clip_ratio/region_mean",
        "sampling/sampling_logp_difference/max",
        "time/rollout",
        "memory/rss",
    }


def test_a_run_of_several_optimizer_steps_shows_each_of_them(db) -> None:
    at = open_page("run", run=fill_run_with_updates(db, steps=4, updates=3))
    assert [heading.value for heading in at.subheader] == ["Optimizer steps"]
    traces = [trace for figure in figures(at) for trace in figure["data"]]
    loss, ratio = [trace for trace in traces if len(numbers(trace["y"])) == 12]
    assert (loss["uid"], ratio["uid"]) == ("loss", "ratio/mean")
    assert numbers(loss["x"])[:4] == pytest.approx([1 / 3, 2 / 3, 1, 4 / 3])
    assert numbers(loss["y"])[:4] == pytest.approx([1.1, 1.2, 1.3, 2.1])
    assert numbers(loss["customdata"]) == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]


def test_a_run_of_one_optimizer_step_per_step_shows_none_apart(db) -> None:
    succeeded, *_ = filled(db)
    assert not open_page("run", run=succeeded).subheader


def test_a_click_on_an_optimizer_step_opens_the_groups_of_its_step(db, monkeypatch) -> None:
    run_id = fill_run_with_updates(db)
    opened = []
    monkeypatch.setattr(
        "dashboard.components.charts.plot",
        lambda key, version, draw: Pick("loss", 2) if key.endswith(":update_loss") else None,
    )
    monkeypatch.setattr("dashboard.components.navigation.open_groups", lambda *point: opened.append(point))
    open_page("run", run=run_id)
    assert opened == [(run_id, 2)]


def test_new_optimizer_steps_are_added_and_known_ones_not_read_again(db, monkeypatch) -> None:
    run_id = fill_run_with_updates(db, steps=6)
    at = open_page("run", run=run_id)
    cursors = []
    real = follow.update_metrics
    monkeypatch.setattr(follow, "update_metrics", lambda *args: (cursors.append(args[3]), real(*args))[1])
    writes.write_step(db, run_id, StepRecord(7, {"loss": 7.0}, updates=[{"loss": 7.1}, {"loss": 7.2}]))
    at.run()
    assert cursors == [3]
    lines = [numbers(trace["y"]) for figure in figures(at) for trace in figure["data"]]
    assert [line[-2:] for line in lines if len(line) == 14] == [[7.1, 7.2]]


def test_what_only_some_runs_log_has_a_chart_only_there(db) -> None:
    some = {"kl": 0.1, "kl/update": 0.2, "kl/beta": 0.05, "dynamic_sampling/draws": 2.0, "memory/update": 5e8}
    some |= {"dynamic_sampling/discarded": 0.5, "dynamic_sampling/reward": 0.25, "entropy/bonus": 0.001}
    some |= {"completions/masked_ratio": 0.1, "rewards/overlong/mean": -0.2, "reward": 0.5}
    some |= {f"sampling/importance_{name}/{key}": 1.0 for name in ("sampling_ratio", "weight") for key in SPREAD}
    some |= {"sampling/importance_beyond_cap": 0.25, "device/memory_used/max": 5e9, "device/utilization/max": 0.5}
    run_id = queue.enqueue(db, small_config(), name="much on")
    writes.write_step(db, run_id, StepRecord(1, some))
    at = open_page("run", run=run_id)
    titles = [element.value for element in at.markdown if element.value.startswith("**")]
    assert len(titles) == 9 + 8 + 5
    assert "**Divergence from the reference**" in titles
    assert "Measured only" in words(at)
    traces = {trace["uid"] for figure in figures(at) for trace in figure["data"]}
    assert some.keys() <= traces
    memory = next(element for element in at.markdown if element.value == "**Memory**")
    assert "`memory/update`" in memory.help
    assert "`memory/score`" not in memory.help


def test_notes_say_why_the_loss_is_near_zero_and_the_clip_cannot_act(db) -> None:
    succeeded, *_ = filled(db)
    shown = words(open_page("run", run=succeeded))
    assert "Near zero by construction" in shown
    assert "Not active (on-policy)" in shown


def test_notes_count_the_terms_beside_the_policy_gradient() -> None:
    plain, pulled = RunConfig(), parse_config({"kl.beta": 0.1})
    assert loss_note(plain).startswith("Near zero by construction")
    assert not loss_note(pulled).startswith("Near zero")
    assert groups_note(pulled).endswith("and the KL term acts alone.")
    assert groups_note(parse_config({"kl.beta": 0.1, "kl.placement": "reward", "kl.estimator": "k1"})) == groups_note(
        plain
    )
    both = parse_config({"kl.beta": 0.1, "entropy.bonus": 0.01})
    assert groups_note(both).endswith("and the KL term and the entropy bonus act alone.")


def test_buttons_that_cannot_act_are_disabled_with_the_reason(db) -> None:
    succeeded, running, _ = filled(db)
    ended = {button.label: button for button in open_page("run", run=succeeded).button}
    assert ended["Stop"].disabled
    assert "waits or runs" in ended["Stop"].help
    assert ended["Resume"].disabled
    live = {button.label: button for button in open_page("run", run=running).button}
    assert not live["Stop"].disabled
    assert "step 10" in live["Fork"].help


def test_stop_asks_the_run_to_stop(db) -> None:
    _, running, _ = filled(db)
    at = open_page("run", run=running)
    next(button for button in at.button if button.label == "Stop").click().run()
    assert not at.exception
    assert queue.stop_requested(db, running)
    assert at.metric[0].value == "◑ stopping"


def test_a_failed_run_shows_its_error_and_the_way_on(db) -> None:
    *_, failed = filled(db)
    at = open_page("run", run=failed)
    assert "Failed at step 16" in at.error[0].value
    assert "NonFiniteUpdateError: 5 updates in a row" in at.code[0].value
    assert "Resume goes on from its checkpoint at step 10" in words(at)
    assert "3 non-finite points not drawn" in drawn(at)["loss"]["layout"]["xaxis"]["title"]["text"]
    assert at.title[0].value == "high \\<b\\>rate\\</b\\> \\$x\\$"


def test_a_waiting_run_says_what_it_waits_for(db) -> None:
    run_id = queue.enqueue(db, small_config(), name="waits")
    at = open_page("run", run=run_id)
    assert "no worker is running" in at.warning[0].value
    assert all(figure["data"] == [] for figure in drawn(at).values())


def test_new_steps_are_added_and_known_ones_not_read_again(db, monkeypatch) -> None:
    _, running, _ = filled(db)
    at = open_page("run", run=running)
    before = drawn(at)["loss"]
    cursors = []
    real = follow.metrics
    monkeypatch.setattr(follow, "metrics", lambda *args: (cursors.append(args[3]), real(*args))[1])
    writes.write_step(db, running, StepRecord(13, {"loss": 0.5, "reward": 0.5}))
    at.run()
    assert cursors == [{running: 9}]
    assert drawn(at)["loss"]["data"][0]["x"] != before["data"][0]["x"]
    assert drawn(at)["loss"]["layout"]["uirevision"] == before["layout"]["uirevision"]


def test_a_click_on_a_point_opens_the_groups_of_its_step(db, monkeypatch) -> None:
    succeeded, *_ = filled(db)
    opened = []
    monkeypatch.setattr(
        "dashboard.components.charts.plot",
        lambda key, version, draw: Pick("entropy", 7) if key.endswith(":entropy") else None,
    )
    monkeypatch.setattr("dashboard.components.navigation.open_groups", lambda *point: opened.append(point))
    open_page("run", run=succeeded)
    assert opened == [(succeeded, 7)]


@pytest.mark.parametrize(
    ("tab", "seen"),
    [
        ("Log", "The log cannot be read from here"),
        ("Config", "What differs from the preset quick\\-start"),
        ("Checkpoints", "Resume (above) goes on from step 10"),
        ("Events", ""),
        ("Every metric", "**Entropy**"),
    ],
)
def test_every_tab_opens(db, tab, seen) -> None:
    *_, failed = filled(db)
    at = open_page("run", run=failed)
    at.session_state["run_tab"] = tab
    at.run()
    assert not at.exception
    assert seen in words(at)


def test_the_tail_of_a_log_is_cut_at_a_line(tmp_path: Path) -> None:
    from dashboard.components.run_tabs import tail

    log = tmp_path / "attempt-1.log"
    log.write_bytes(b"one\ntwo \xff\r 50%\r100%\nthree\n")
    assert tail(log) == ("one\ntwo �\n 50%\n100%\nthree", False)
    assert tail(log, most_bytes=10) == ("three", True)
    assert tail(log, most_lines=2) == ("100%\nthree", True)


@pytest.mark.parametrize("page", ["run", "runs", "compare"])
@pytest.mark.parametrize("grpo_steps", [0, 2])
def test_a_run_of_sft_is_drawn_with_or_without_grpo_behind_it(db, page: str, grpo_steps: int) -> None:
    run_id = fill_run_of_sft(db, grpo_steps=grpo_steps)
    address = {"run": run_id} if page == "run" else {"runs": run_id} if page == "compare" else {}
    at = open_page(page, **address)
    if page == "run":
        assert ("This is that of SFT" if grpo_steps == 0 else "Up to step 3 that of SFT") in words(at)
        assert {"loss", "entropy", "grad_norm"} <= set(drawn(at))
