"""Packages that only some settings need, looked for without being imported."""

from collections.abc import Iterator
from importlib.util import find_spec

from engine.config import RunConfig


def missing_extras(config: RunConfig) -> tuple[str, ...]:
    """Return a sentence for each package that a run of this config needs and this machine lacks."""
    return tuple(
        f"{setting} needs {package}, which is not installed on this machine: {install}."
        for setting, package, module, install in _needed(config)
        if find_spec(module) is None
    )


def _needed(config: RunConfig) -> Iterator[tuple[str, str, str, str]]:
    """Yield setting, package, module and the way to install it."""
    if config.rollout.engine == "vllm":
        yield "rollout.engine=vllm", "vLLM", "vllm", "`make vllm`"
    if config.lora.rank is not None:
        yield f"lora.rank={config.lora.rank}", "peft", "peft", "`pip install 'grpo-lab[lora]'`"
    if config.optimizer.name == "adamw_8bit":
        yield "optimizer.name=adamw_8bit", "bitsandbytes", "bitsandbytes", "`pip install bitsandbytes` (CUDA)"
    if config.task.name == "reasoning_gym":
        yield "task.name=reasoning_gym", "reasoning-gym", "reasoning_gym", "`pip install 'grpo-lab[reasoning-gym]'`"
