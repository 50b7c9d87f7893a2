"""The per-token arrays of one completion, packed into one compressed column."""

import zlib

import numpy as np
from numpy.typing import NDArray

from engine.errors import StoreError
from engine.store.records import TokenData
from engine.types import CompletionRecord

# Level 1: log-probs are close to noise, and a higher level costs several times more for a few per cent.
_LEVEL = 1
_INT = np.dtype("<i4")
_FLOAT = np.dtype("<f4")


def pack_token_ids(token_ids: tuple[int, ...]) -> bytes:
    """Return token ids as compressed little-endian 32-bit integers."""
    return zlib.compress(np.asarray(token_ids, _INT).tobytes(), _LEVEL)


def unpack_token_ids(data: bytes) -> tuple[int, ...]:
    """Return what `pack_token_ids` packed."""
    return tuple(np.frombuffer(zlib.decompress(data), _INT).tolist())


def pack_tokens(record: CompletionRecord) -> bytes:
    """Return ids, sampler log-probs and, where present, policy log-probs and entropy, one after the other.

    Raises:
        StoreError: if an array has another length than the token ids.
    """
    ids = np.asarray(record.completion.token_ids, _INT)
    parts = [ids.tobytes()]
    arrays = (
        ("sampler_log_probs", record.completion.sampler_log_probs),
        ("policy_log_probs", record.policy_log_probs),
        ("entropy", record.entropy),
    )
    for name, array in arrays:
        if array is None:
            continue
        if len(array) != len(ids):
            raise StoreError(f"{name} has {len(array)} values for {len(ids)} tokens; pass one value per token")
        parts.append(np.asarray(array, _FLOAT).tobytes())
    return zlib.compress(b"".join(parts), _LEVEL)


def unpack_tokens(data: bytes, length: int, *, has_policy_log_probs: bool, has_entropy: bool) -> TokenData:
    """Return the arrays that `pack_tokens` packed."""
    raw = zlib.decompress(data)
    width = length * _FLOAT.itemsize

    def floats(position: int) -> NDArray[np.float32]:
        return np.frombuffer(raw, _FLOAT, count=length, offset=position * width).astype(np.float32)

    return TokenData(
        token_ids=np.frombuffer(raw, _INT, count=length).astype(np.int32),
        sampler_log_probs=floats(1),
        policy_log_probs=floats(2) if has_policy_log_probs else None,
        entropy=floats(3 if has_policy_log_probs else 2) if has_entropy else None,
    )
