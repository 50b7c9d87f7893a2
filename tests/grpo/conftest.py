"""Every test that takes `array` runs on numpy and on torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings

# Same examples every time, and no failure because the machine is busy.
settings.register_profile("steady", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("steady")


def _numpy_array(values: Any, dtype: str = "float32") -> Any:
    return np.asarray(values, dtype=dtype)


def _torch_tensor(values: Any, dtype: str = "float32") -> Any:
    return torch.asarray(np.asarray(values, dtype=dtype))


@pytest.fixture(params=[_numpy_array, _torch_tensor], ids=["numpy", "torch"])
def array(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return request.param
