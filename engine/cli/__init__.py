"""`grpo-lab`: launch runs, look at them, stop, resume and fork them, from a terminal or a script."""

from engine.cli.app import app

__all__ = ["app"]
