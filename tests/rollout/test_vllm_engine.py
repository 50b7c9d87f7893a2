"""vLLM beside the trainer, on a CPU with tiny-math; tests.rollout.vllm_checks is the scenario, in its own process."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from engine.config import parse_config, remarks
from engine.errors import ConfigError
from engine.rollout import vllm_engine
from engine.rollout.vllm_engine import RolloutError

ROOT = Path(__file__).parents[2]


class TestWithoutIt:
    def test_a_missing_package_is_named_with_the_way_to_install_it(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(vllm_engine, "find_spec", lambda _: None)
        with pytest.raises(RolloutError, match="vLLM is not installed; run `make vllm`, or use engine=transformers"):
            vllm_engine.import_vllm(on_gpu=False)

    def test_a_package_that_does_not_import_fails_with_its_reason(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        (tmp_path / "vllm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "vllm", raising=False)
        monkeypatch.setattr(vllm_engine, "find_spec", lambda _: object())
        with pytest.raises(RolloutError, match="cannot be imported: RuntimeError: operator torchvision::nms does not"):
            vllm_engine.import_vllm(on_gpu=False)

    def test_adapters_are_refused_and_idle_settings_remarked_on(self):
        with pytest.raises(ConfigError, match=r"engine=vllm samples with whole weights, and lora\.rank=8"):
            parse_config({"rollout.engine": "vllm", "lora.rank": 8})
        idle = parse_config({"vllm.cpu_cache": 64})
        assert "vllm.cpu_cache without effect: rollout.engine=transformers." in remarks(idle)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if find_spec("vllm") is None:
        pytest.skip("vLLM is not installed; `make vllm` installs it")
    folder = tmp_path_factory.mktemp("vllm")
    done = subprocess.run(
        [sys.executable, "-m", "tests.rollout.vllm_checks", str(folder)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    document: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return document


class TestTinyMath:
    def test_greedy_completions_are_those_of_the_transformers_engine(self, seen: dict[str, Any]):
        assert seen["before"]["vllm"] == seen["before"]["transformers"]

    def test_after_a_change_of_weights_they_are_those_of_the_new_ones_though_the_prompts_were_cached(
        self, seen: dict[str, Any]
    ):
        assert seen["stale"] == seen["before"]["vllm"]  # until it is told
        assert seen["after"]["vllm"] == seen["after"]["transformers"]
        assert seen["after"]["vllm"] != seen["before"]["vllm"]

    def test_they_are_those_of_an_engine_started_with_the_new_weights(self, seen: dict[str, Any]):
        assert seen["fresh"] == seen["after"]["vllm"]

    def test_its_version_is_that_of_the_weights_that_have_arrived(self, seen: dict[str, Any]):
        assert (seen["first_version"], seen["version"]) == (0, 5)

    def test_one_seed_gives_one_set_of_completions_and_another_seed_others(self, seen: dict[str, Any]):
        first, again = seen["sampled"]
        assert first == again
        assert seen["other_seed"] != first
        assert len({tuple(row) for row in first[0]}) > 1

    def test_the_log_probs_are_the_policys_at_the_sampling_temperature(self, seen: dict[str, Any]):
        assert seen["difference"] < 1e-4

    def test_a_completion_says_why_it_ended_and_its_text_is_that_of_its_tokens(self, seen: dict[str, Any]):
        for reason, stop, text, decoded in seen["ends"]:
            assert (reason == "stop") == (stop == "</answer>")
            assert reason in ("eos", "stop", "length")
            assert decoded.startswith(text)
            assert text.endswith("</answer>") == (reason == "stop")

    def test_the_trainers_generator_is_left_as_it_was(self, seen: dict[str, Any]):
        assert seen["random_state_untouched"] is True

    def test_a_prompt_that_is_too_long_fails_with_the_reason(self, seen: dict[str, Any]):
        assert "prompt contains 200 input tokens" in seen["too_long"]
        assert "choose rollout.engine=transformers" in seen["too_long"]
