from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.memory_card import remedy_line, sampler_line
from dashboard.data import device
from dashboard.data.device import host_memory, known_memory, lacks_gpu
from dashboard.data.outlook import outlook
from engine.config import RunConfig, parse_config
from engine.planner import GIB, MIB, Remedy, SamplerRoom, find_shape, size
from engine.store import queue
from engine.store.database import Database
from tests.dashboard.open_page import figures, open_page

MACHINE = 23 * GIB


@pytest.fixture(autouse=True)
def _a_machine_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_has_gpu", lambda: False)
    monkeypatch.setattr(device, "host_memory", lambda: MACHINE)


def field(at: AppTest, path: str):
    return next(
        each for each in (*at.text_input, *at.selectbox, *at.number_input) if each.key == path or each.label == path
    )


def shown(at: AppTest) -> str:
    return "\n".join(each.value for each in (*at.markdown, *at.caption))


def opened(at: AppTest) -> AppTest:
    at.session_state["memory_fold"] = True
    at.run()
    assert not at.exception
    return at


def test_the_quick_start_fits_and_the_details_are_folded(db: Database) -> None:
    at = open_page("new_run")
    assert "**Memory:** about 568 MiB of 23 GiB, :green[:material/check: fits]" in shown(at)
    assert not figures(at)
    assert "How it is computed" not in shown(at)


def test_the_fold_has_the_figure_the_device_and_every_formula(db: Database) -> None:
    at = opened(open_page("new_run"))
    assert figures(at)[0]["data"][0]["uid"] == "weights"
    assert field(at, "memory_device_box").value == "here"
    assert field(at, "memory_prompt_box").value == 48
    assert "**Weights**, 3.1 MiB (rollout and update): 824,320 parameters × 4 bytes \\(float32\\)" in shown(at)


def test_a_large_model_says_what_would_make_it_fit(db: Database) -> None:
    at = opened(open_page("new_run"))
    field(at, "new_run:model.dtype").set_value("bfloat16")
    field(at, "new_run:model.name").set_value("Qwen/Qwen2.5-Math-1.5B").run()
    assert ":red[:material/error: too large]" in shown(at)
    assert "It fits with any one of these changes" in shown(at)
    assert "Gradient accumulation steps **1 → 16**" in shown(at)
    assert "adamw" not in shown(at), "8-bit moments need a GPU"


def test_changes_that_suffice_only_together_are_said_to(db: Database) -> None:
    at = opened(open_page("new_run"))
    field(at, "new_run:rollout.max_tokens").set_value("1024")
    field(at, "new_run:model.name").set_value("Qwen/Qwen2.5-Math-1.5B").run()
    field(at, "memory_device_box").set_value("24").run()
    assert "It fits with all of these changes, the mildest first" in shown(at)
    assert "Optimizer **adamw → adamw\\_8bit**" in shown(at)


def test_where_nothing_suffices_it_says_what_remains(db: Database) -> None:
    at = opened(open_page("new_run"))
    field(at, "new_run:model.name").set_value("Qwen/Qwen2.5-7B").run()
    field(at, "memory_device_box").set_value("16").run()
    field(at, "memory_prompt_box").set_value(30_000).run()
    assert "It needs a smaller model, shorter completions or a larger device. All of these leave it at" in shown(at)


def test_the_chosen_device_outlasts_the_page(db: Database) -> None:
    at = opened(open_page("new_run"))
    field(at, "memory_device_box").set_value("80").run()
    assert "of 80 GiB" in shown(at)
    at.switch_page("views/runs.py").run()
    at.switch_page("views/new_run.py").run()
    assert "of 80 GiB" in shown(at)


def test_on_a_gpu_of_unknown_size_the_person_chooses(db: Database) -> None:
    at = opened(open_page("new_run"))
    field(at, "new_run:model.device").set_value("cuda").run()
    assert "of 24 GiB" in shown(at)
    assert field(at, "memory_device_box").options == [f"GPU with {card} GB" for card in (16, 24, 40, 48, 80, 141)]


def test_of_an_unknown_model_it_says_what_would_let_it_know(db: Database) -> None:
    at = open_page("new_run")
    field(at, "new_run:model.name").set_value("someone/unheard-of").run()
    assert "**Memory:** not known for this model" in shown(at)
    assert "local Hugging Face cache" in shown(at)


def test_without_a_config_there_is_no_card(db: Database) -> None:
    at = open_page("new_run")
    field(at, "new_run:rollout.group_size").set_value("7").run()
    assert "**Memory:**" not in shown(at)


def test_a_worker_elsewhere_makes_the_memory_unknown(db: Database) -> None:
    assert known_memory(db, RunConfig()) is not None
    queue.worker_heartbeat(db, "there:1", host="another-machine", pid=1, now=datetime.now(UTC))
    assert known_memory(db, RunConfig()) is None


def test_a_run_on_a_gpu_has_memory_that_nobody_reports(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert known_memory(db, parse_config({"model.device": "cuda"})) is None
    monkeypatch.setattr(device, "_has_gpu", lambda: True)
    assert known_memory(db, RunConfig()) is None
    assert known_memory(db, parse_config({"model.device": "cpu"})) == MACHINE


def test_what_needs_a_gpu_says_so_where_there_is_none(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    at = open_page("new_run", preset="gsm8k-1.5b-24gb")
    assert "model.device=cuda and optimizer.name=adamw_8bit need a CUDA GPU, and this machine has none" in shown(at)
    assert "of 24 GiB, :green[:material/check: fits]" in shown(at)
    on_gpu = parse_config({"model.device": "cuda"})
    assert lacks_gpu(db, RunConfig()) is None
    assert lacks_gpu(db, on_gpu) is not None
    monkeypatch.setattr(device, "_has_gpu", lambda: True)
    assert lacks_gpu(db, on_gpu) is None


def test_a_worker_elsewhere_may_have_the_gpu(db: Database) -> None:
    queue.worker_heartbeat(db, "there:1", host="another-machine", pid=1, now=datetime.now(UTC))
    assert lacks_gpu(db, parse_config({"model.device": "cuda"})) is None


def test_a_container_may_have_less_than_the_machine(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("1048576\n")
    assert host_memory(limit) == 2**20
    limit.write_text("max\n")
    assert host_memory(limit) == host_memory(tmp_path / "nothing") == psutil.virtual_memory().total


def test_a_remedy_names_its_field_as_the_form_does() -> None:
    remedy = Remedy("model.gradient_checkpointing", True, 3 * GIB, 12 * GIB, "fits")
    words = "Gradient checkpointing **off → on**: saves 3.0 GiB, leaves 12 GiB"
    assert remedy_line(RunConfig(), remedy) == words
    assert remedy_line(RunConfig(), Remedy("lora.rank", 16, GIB, GIB, "fits")).startswith("Adapter rank **empty → 16**")


def test_a_remedy_that_saves_nothing_says_what_it_gives() -> None:
    words = remedy_line(RunConfig(), Remedy("vllm.gpu_memory_utilization", 0.5, 0, GIB, "fits"))
    assert words.endswith("**0.4 → 0.5**: gives vLLM room to start, leaves 1.0 GiB")


def test_vllm_on_a_gpu_has_its_share_and_says_how_many_sequences_have_room(db: Database) -> None:
    at = opened(open_page("new_run"))
    field(at, "new_run:rollout.engine").set_value("vllm").run()
    field(at, "memory_device_box").set_value("24").run()
    assert "room for 128 sequences at once, all as long as they may get. What vLLM takes on a GPU is on pa" in shown(at)
    assert "**Cache of vLLM**, " in shown(at)
    field(at, "new_run:vllm.gpu_memory_utilization").set_value("0.001").run()
    assert "no room for vLLM to start" in shown(at)
    assert "**0.001 → 0.05**: gives vLLM room to start" in shown(at)


def test_vllms_room_in_words() -> None:
    assert "room for 3 sequences at once, all as long as they may get, so 8 of a step come in 3 waves." in sampler_line(
        SamplerRoom(cache=30 * MIB, longest=20 * MIB, whole=10 * MIB, rows=8)
    )
    assert sampler_line(SamplerRoom(cache=-5, longest=20 * MIB, whole=10 * MIB, rows=8)).startswith(
        "vLLM has 0.0 MiB left for keys and values, and starts only where one sequence of its longest has room: 20 MiB"
    )


def test_an_outlook_is_worked_out_once() -> None:
    shape = find_shape("tiny-math")
    assert shape is not None
    assert outlook(RunConfig(), shape, GIB, 48) is outlook(RunConfig(), shape, GIB, 48)


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [(0, "0.0 MiB"), (4e5, "0.4 MiB"), (41 * 2**20, "41 MiB"), (2.9 * GIB, "2.9 GiB"), (1694 * GIB, "1,694 GiB")],
)
def test_sizes_in_words(n_bytes: float, words: str) -> None:
    assert size(n_bytes) == words
