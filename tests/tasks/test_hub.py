import json
import shutil
import time

import datasets
import pytest

from engine.errors import TaskError
from engine.tasks.hub import hub_rows
from engine.tasks.rows import load_rows

ROWS = {"train": [{"question": "1 + 1?", "answer": "2"}], "test": [{"question": "2 + 2?", "answer": "4"}]}


@pytest.fixture
def no_network(tmp_path, monkeypatch):
    """A hub at a closed port of this machine, and an empty cache."""
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_a_dataset_that_is_neither_cached_nor_to_be_had_is_refused_in_seconds_with_the_way_out(no_network):
    began = time.monotonic()
    with pytest.raises(TaskError) as caught:
        hub_rows("openai/gsm8k", "main")
    assert time.monotonic() - began < 20
    message = str(caught.value)
    assert message.startswith(f"task.path: dataset openai/gsm8k:main is not in the cache ({no_network})")
    assert "set task.path to a local file or folder" in message
    assert "fill the cache" in message


def test_nothing_is_asked_of_the_hub_where_the_person_works_offline(no_network, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: pytest.fail("the hub was asked"))
    with pytest.raises(TaskError, match="is not in the cache"):
        hub_rows("openai/gsm8k", "main")
    assert datasets.config.HF_HUB_OFFLINE


def test_a_cached_dataset_is_read_without_asking_the_hub(no_network, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", lambda *_, **__: pytest.fail("the hub was asked"))
    fill_cache(no_network, tmp_path)
    assert hub_rows("openai/gsm8k", "main") == ROWS
    assert load_rows("openai/gsm8k:main") == ROWS
    assert not datasets.config.HF_HUB_OFFLINE


def test_another_subset_than_the_cached_one_is_refused(no_network, tmp_path):
    fill_cache(no_network, tmp_path)
    with pytest.raises(TaskError, match="openai/gsm8k:socratic is not in the cache"):
        hub_rows("openai/gsm8k", "socratic")


def fill_cache(cache, tmp_path):
    """Leave the files that a download of `openai/gsm8k`, subset `main`, leaves."""
    source = tmp_path / "source"
    source.mkdir()
    for split, rows in ROWS.items():
        (source / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    datasets.disable_progress_bars()
    made = datasets.load_dataset(str(source), cache_dir=str(tmp_path / "made"))
    (folder,) = {path.parent for path in (tmp_path / "made").rglob("dataset_info.json")}
    del made
    target = cache / "openai___gsm8k" / "main" / "0.0.0" / "0123456789abcdef"
    shutil.copytree(folder, target)
    for split in ROWS:
        (target / f"source-{split}.arrow").rename(target / f"gsm8k-{split}.arrow")
    info = json.loads((target / "dataset_info.json").read_text())
    info |= {"config_name": "main", "dataset_name": "gsm8k"}
    (target / "dataset_info.json").write_text(json.dumps(info))
