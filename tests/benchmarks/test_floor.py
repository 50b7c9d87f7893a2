import pytest
import torch

from benchmarks.floor import count
from engine.planner.shapes import ModelShape
from engine.policy.policy import TINY_MATH, load_policy

ONE = ModelShape(
    layers=1, hidden=2, intermediate=3, heads=1, kv_heads=1, head_dim=2, vocabulary=5, positions=64, tied=True
)


def test_work_is_counted_as_by_hand():
    # Layers: four matrices of 2x2 and three of 2x3, 34 weights; output layer 2x5, 10 weights; 8 per pair of tokens.
    work = count(ONE, prompts=1, group=2, prompt=3, tokens=2)
    # One prompt of 3 tokens, then one token in each of two rows with 4 pairs; 2 · 2 tokens with logits.
    assert work.rollout == 2 * 34 * (3 + 2) + 2 * 10 * 4 + 8 * (6 + 2 * 4)
    assert work.update == 3 * work.rollout


def test_the_forward_pass_of_tiny_math_takes_as_many_operations_as_are_counted():
    from torch.utils.flop_counter import FlopCounterMode

    from engine.planner.shapes import find_shape

    model, shape = load_policy(str(TINY_MATH), device="cpu").model, find_shape("tiny-math")
    model.set_attn_implementation("eager")  # the counter does not know the one kernel of sdpa on a CPU
    prompt, tokens = 16, 9
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        states = model.get_decoder()(input_ids=torch.ones(1, prompt + tokens - 1, dtype=torch.int64))
        model.get_output_embeddings()(states.last_hidden_state[:, prompt - 1 :])
    counted = count(shape, prompts=1, group=1, prompt=prompt, tokens=tokens).update / 3
    # The counter takes every pair of tokens, those to come as well: 24 · 24 in place of 24 · 25 / 2.
    unseen = 4 * shape.layers * shape.heads * shape.head_dim * (24 * 24 - 24 * 25 // 2)
    assert counter.get_total_flops() == pytest.approx(counted + unseen, rel=1e-9)


def test_a_shared_prompt_is_counted_once():
    one, two = (count(ONE, prompts=1, group=group, prompt=3, tokens=2) for group in (1, 2))
    alone = count(ONE, prompts=2, group=1, prompt=3, tokens=2)
    assert alone.update == 2 * one.update
    # The second prompt: 3 tokens through 34 weights, 6 pairs.
    assert alone.update - two.update == 3 * (2 * 34 * 3 + 8 * 6)
