import pytest

from engine import extras
from engine.config import RunConfig, parse_config


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"rollout.engine": "vllm"},
            "rollout.engine=vllm needs vLLM, which is not installed on this machine: `make vllm`.",
        ),
        ({"lora.rank": 8}, "lora.rank=8 needs peft, "),
        ({"optimizer.name": "adamw_8bit", "model.device": "cuda"}, "optimizer.name=adamw_8bit needs bitsandbytes, "),
        ({"task.name": "reasoning_gym:chain_sum"}, "task.name=reasoning_gym needs reasoning-gym, "),
    ],
)
def test_what_a_setting_needs_and_the_machine_lacks_is_said_with_the_way_to_install_it(monkeypatch, settings, said):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    (sentence,) = extras.missing_extras(parse_config(settings))
    assert sentence.startswith(said)
    monkeypatch.setattr(extras, "find_spec", lambda _: object())
    assert extras.missing_extras(parse_config(settings)) == ()


def test_the_quick_start_needs_nothing_more(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    assert extras.missing_extras(RunConfig()) == ()
