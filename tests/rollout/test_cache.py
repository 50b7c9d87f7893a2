import torch
from transformers import MistralConfig
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from engine.rollout.cache import GrowingLayer, growing_cache


def test_it_holds_what_the_concatenating_layer_holds_through_growth_and_leaving_rows():
    generator = torch.Generator().manual_seed(0)
    ours, theirs = GrowingLayer(), DynamicLayer()
    rows = 3
    for step in range(60):
        keys, values = torch.randn(2, rows, 2, 5 if step == 0 else 1, 4, generator=generator)
        for one, other in zip(ours.update(keys, values), theirs.update(keys, values), strict=True):
            assert torch.equal(one, other)
        if step in (0, 30):
            chosen = torch.tensor([2, 0, 0, 1] if step == 0 else [3, 1])
            ours.reorder_cache(chosen)
            theirs.reorder_cache(chosen)
            rows = len(chosen)
        assert ours.get_seq_length() == theirs.get_seq_length()
        assert torch.equal(ours.keys, theirs.keys)


def test_room_is_taken_ahead_so_that_few_tokens_copy_the_past():
    layer = GrowingLayer()
    places = set()
    for _ in range(100):
        keys = torch.zeros(1, 1, 1, 2)
        places.add(layer.update(keys, keys)[0].data_ptr())
    assert len(places) < 8


def test_layers_of_other_kinds_are_left_as_they_are():
    sliding = growing_cache(MistralConfig(num_hidden_layers=2, sliding_window=4))
    full = growing_cache(MistralConfig(num_hidden_layers=2, sliding_window=None))
    assert [type(layer) for layer in sliding.layers] == [DynamicSlidingWindowLayer] * 2
    assert [type(layer) for layer in full.layers] == [GrowingLayer] * 2
