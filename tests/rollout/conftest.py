"""A byte tokenizer with a few longer tokens, and untrained models that are small enough to check one by one."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

# These models are too small to share out, and waiting for a busy second core costs more than it brings.
torch.set_num_threads(1)

END, OTHER_END = "<|end|>", "<|other_end|>"
LONGER = ["<think>", "</answer>", "wer>XY", "P</answer>Q</answer>"]


@pytest.fixture(scope="session")
def tokenizer():
    vocabulary = {token: index for index, token in enumerate([END, OTHER_END, *sorted(ByteLevel.alphabet())])}
    backend = Tokenizer(BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = ByteLevelDecoder()
    backend.add_special_tokens([AddedToken(token, normalized=False) for token in (END, OTHER_END, "<think>")])
    backend.add_tokens([AddedToken(token, normalized=False) for token in LONGER])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)


@pytest.fixture(scope="session")
def model(tokenizer):
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
        initializer_range=0.4,  # far from uniform, so that a wrong position or mask shows
    )
    model = Qwen2ForCausalLM(config).eval()
    model.generation_config = GenerationConfig(
        eos_token_id=[tokenizer.convert_tokens_to_ids(token) for token in (END, OTHER_END)], pad_token_id=0
    )
    return model


class ScriptedModel:
    """Runs a real model, then lets each token be followed by the one that the script has after it."""

    def __init__(self, model, scripts):
        self._model = model
        self._follower = {}
        for script in scripts:
            assert len(set(script)) == len(script)
            self._follower.update(pairwise(script))

    def __getattr__(self, name):
        return getattr(self._model, name)

    def __call__(self, input_ids, **kwargs):
        shape = self._model(input_ids=input_ids, **kwargs).logits.shape
        logits = torch.zeros(shape)
        for row, last in enumerate(input_ids[:, -1].tolist()):
            logits[row, -1, self._follower.get(last, last)] = 50.0
        return SimpleNamespace(logits=logits)


@pytest.fixture
def scripted(model):
    return lambda *scripts: ScriptedModel(model, scripts)
