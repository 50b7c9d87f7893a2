import numpy as np
import pytest

from engine.errors import StoreError
from engine.store.token_arrays import pack_token_ids, pack_tokens, unpack_token_ids, unpack_tokens
from engine.types import Completion, CompletionRecord, Reward


def record(policy: list[float] | None = None, entropy: list[float] | None = None) -> CompletionRecord:
    def array(values: list[float] | None) -> np.ndarray | None:
        return None if values is None else np.array(values, np.float32)

    completion = Completion((5, 70_000, 2), "x", np.array([-0.5, -1.0, -np.inf], np.float32), "eos")
    return CompletionRecord(completion, Reward(1.0, {}, None, "correct"), 0.5, array(policy), array(entropy))


def test_token_ids_come_back():
    assert unpack_token_ids(pack_token_ids((0, 151_643, 7))) == (0, 151_643, 7)
    assert unpack_token_ids(pack_token_ids(())) == ()


@pytest.mark.parametrize("policy", [None, [-0.25, -2.0, float("nan")]])
@pytest.mark.parametrize("entropy", [None, [0.5, 0.25, 0.0]])
def test_every_array_comes_back_bit_for_bit(policy: list[float] | None, entropy: list[float] | None):
    data = unpack_tokens(
        pack_tokens(record(policy, entropy)),
        3,
        has_policy_log_probs=policy is not None,
        has_entropy=entropy is not None,
    )
    assert data.token_ids.tolist() == [5, 70_000, 2]
    assert data.sampler_log_probs.tolist() == [-0.5, -1.0, -np.inf]
    for stored, given in ((data.policy_log_probs, policy), (data.entropy, entropy)):
        if given is None:
            assert stored is None
        else:
            np.testing.assert_array_equal(stored, np.array(given, np.float32))


def test_an_array_of_another_length_is_refused_by_name():
    with pytest.raises(StoreError, match="entropy has 2 values for 3 tokens"):
        pack_tokens(record(entropy=[0.5, 0.5]))
