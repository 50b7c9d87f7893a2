"""AdamW, its learning-rate schedule, and the guarded optimizer step."""

import math
from dataclasses import dataclass
from typing import Any, cast

import torch

from engine.config.sections import OptimizerConfig
from engine.errors import NonFiniteUpdateError
from engine.training.adamw_8bit import make_adamw_8bit


def make_optimizer(model: Any, config: OptimizerConfig) -> torch.optim.Optimizer:
    """Return the optimizer over all trainable parameters; biases and norms have no weight decay.

    Raises:
        ConfigError: if `adamw_8bit` is asked for and cannot run here.
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    groups = [
        {"params": [p for p in trainable if p.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [p for p in trainable if p.ndim < 2], "weight_decay": 0.0},
    ]
    if config.name == "adamw_8bit":
        return cast(torch.optim.Optimizer, make_adamw_8bit(groups, config, trainable[0].device))
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=(config.beta1, config.beta2), eps=config.adam_eps, fused=True
    )


def learning_rate(config: OptimizerConfig, *, step: int, total_steps: int, peak: float | None = None) -> float:
    """Return the learning rate of 1-based `step` of a phase; a function of the step alone, so it survives a resume.

    `peak` takes the place of `config.learning_rate`.
    Warm-up rises linearly and reaches the peak at step `warmup_steps`. After it, with
    p = (steps done since warm-up) / (steps that follow warm-up): constant 1, linear 1 − p,
    cosine (1 + cos πp) / 2.
    """
    peak = config.learning_rate if peak is None else peak
    if step <= config.warmup_steps:
        return peak * step / config.warmup_steps
    progress = (step - 1 - config.warmup_steps) / max(1, total_steps - config.warmup_steps)
    shapes = {"constant": 1.0, "linear": 1.0 - progress, "cosine": 0.5 * (1.0 + math.cos(math.pi * progress))}
    return peak * shapes[config.schedule]


@dataclass(slots=True)
class OptimizerStep:
    """Applies accumulated gradients, unless they or the loss are not finite.

    `changes` counts the optimizer steps of the run that changed the weights, those before a resume or fork included.
    """

    model: Any
    optimizer: torch.optim.Optimizer
    max_grad_norm: float
    max_skipped_in_a_row: int
    skipped_in_a_row: int = 0
    changes: int = 0

    def apply(self, loss: float, *, step: int) -> tuple[float, bool]:
        """Clip, step and clear the gradients. Returns the norm before clipping and whether weights changed.

        Raises:
            NonFiniteUpdateError: after `max_skipped_in_a_row` skipped updates in a row.
        """
        self._make_absent_gradients_zero()
        norm = float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_grad_norm))
        finite = math.isfinite(loss) and math.isfinite(norm)
        if finite:
            self.optimizer.step()
            self.skipped_in_a_row = 0
            self.changes += 1
        else:
            self.skipped_in_a_row += 1
        self.optimizer.zero_grad(set_to_none=True)
        if self.skipped_in_a_row >= self.max_skipped_in_a_row:
            raise NonFiniteUpdateError(
                f"step {step}: {self.skipped_in_a_row} optimizer steps in a row had a non-finite loss or gradient "
                f"(loss={loss}, gradient norm={norm}); lower optimizer.learning_rate or raise "
                "stopping.max_nonfinite_updates"
            )
        return norm, finite

    def begin_anew(self) -> None:
        """Forget the moments and the skipped updates, as if no step had been taken."""
        self.optimizer.state.clear()
        self.skipped_in_a_row = 0

    def drop_gradients(self) -> None:
        """Forget what was accumulated."""
        self.optimizer.zero_grad(set_to_none=True)

    def set_learning_rate(self, value: float) -> None:
        """Set the learning rate of every parameter group."""
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def _make_absent_gradients_zero(self) -> None:
        """AdamW moves on by its momentum when a gradient is 0, and not at all when there is none.

        A step in which no row teaches has a gradient of 0, though no backward pass was run.
        """
        parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if all(parameter.grad is None for parameter in parameters):
            for parameter in parameters:
                parameter.grad = torch.zeros_like(parameter)
