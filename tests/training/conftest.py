import numpy as np
import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from engine.types import Completion, Group, Problem, Reward


@pytest.fixture
def model() -> Qwen2ForCausalLM:
    """A random Qwen2 small enough for exact checks."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
    return Qwen2ForCausalLM(config).eval()


@pytest.fixture
def groups() -> list[Group]:
    """Two groups of four completions with unequal prompts and lengths from 1 to 9 tokens."""
    rng = np.random.default_rng(0)
    lengths = [[3, 9, 1, 5], [2, 7, 4, 6]]
    return [
        Group(
            problem=Problem(f"p{place}", f"question {place}", "1"),
            prompt=f"question {place}",
            prompt_token_ids=tuple(rng.integers(0, 32, 4 + 3 * place).tolist()),
            completions=tuple(
                Completion(
                    token_ids=tuple(rng.integers(0, 32, length).tolist()),
                    text="",
                    sampler_log_probs=np.full(length, -3.0, np.float32),
                    finish_reason="eos",
                )
                for length in members
            ),
        )
        for place, members in enumerate(lengths)
    ]


@pytest.fixture
def rewards() -> list[list[Reward]]:
    values = [[1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]]
    return [
        [Reward(value, {"format": 1.0, "answer": value}, "1", "correct" if value else "wrong") for value in members]
        for members in values
    ]
