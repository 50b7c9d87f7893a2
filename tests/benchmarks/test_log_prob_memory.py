import sys

import pytest
import torch

from benchmarks import log_prob_memory

MIB = 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_all_logits_at_once_take_more_than_their_chunks(monkeypatch):
    # 2,048 tokens of 16,384 float32 logits are 128 MiB.
    for name, value in (("VOCABULARY", 2**14), ("TOKENS", 512), ("THREADS", torch.get_num_threads())):
        monkeypatch.setattr(log_prob_memory, name, value)
    # Chunks of 32 MiB or less glibc may keep for later, which would count as taken.
    assert log_prob_memory.peak_bytes(40) < 3 * 128 * MIB < 4 * 128 * MIB < log_prob_memory.peak_bytes(1000)
