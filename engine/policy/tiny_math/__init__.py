"""tiny-math: the language model that comes with the package, small enough to train on two CPU cores."""

from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
