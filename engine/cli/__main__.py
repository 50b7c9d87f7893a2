"""`python -m engine.cli` is `grpo-lab`."""

from engine.cli.app import app

app(prog_name="grpo-lab")
