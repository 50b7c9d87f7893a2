"""GRPO Lab's pages: they read the store, draw it, and queue runs. No torch in this process."""
