"""GRPO Lab's engine: everything that runs without a browser."""
