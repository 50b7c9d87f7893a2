import json

import pytest
import torch

from engine.errors import GrpoLabError
from engine.policy.policy import load_policy, resolve_device, save_policy

DECOMPOSED = "cafe\u0301 7 + 12"


def test_a_saved_policy_comes_back_with_weights_and_exact_tokenizer(tmp_path):
    policy = load_policy("tiny-math")
    save_policy(policy, tmp_path)
    again = load_policy(str(tmp_path))
    for before, after in zip(policy.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(before, after)
    for tokenizer in (policy.tokenizer, again.tokenizer):
        assert tokenizer.decode(tokenizer(DECOMPOSED).input_ids) == DECOMPOSED


def test_a_model_that_is_not_there_is_named_with_the_ways_out(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2"}))
    with pytest.raises(GrpoLabError, match=r"model\.name=.* cannot be loaded: .*; use tiny-math"):
        load_policy(str(tmp_path))


def test_a_gpu_that_is_not_there_is_refused(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == torch.device("cpu")
    with pytest.raises(GrpoLabError, match=r"model\.device=cuda, but torch finds no GPU"):
        resolve_device("cuda")
