"""Seeds for every use of chance, derived from the run's seed by name.

No draw depends on how many came before it. So a resumed run draws what a run that never stopped
would have drawn, without any generator's state to carry over.
"""

import hashlib

import torch


def derive_seed(seed: int, *names: str | int) -> int:
    """Return a seed in [0, 2^63) for one use, such as `derive_seed(run_seed, "rollout", step)`."""
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def shuffled(count: int, seed: int) -> torch.Tensor:
    """Return 0 … `count` − 1 in the order that `seed` gives, int64."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))
