"""An optimizer step that changes nothing, for tests that look at gradients."""

import torch

from engine.training.optimizer import OptimizerStep


class FrozenOptimizer(OptimizerStep):
    """Keeps the gradient of each optimizer step instead of applying it."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(model, torch.optim.SGD(model.parameters(), lr=0.0), 1e9, 5)
        self.gradients: list[torch.Tensor] = []

    def apply(self, loss: float, *, step: int) -> tuple[float, bool]:
        grads = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self.model.parameters()]
        self.gradients.append(torch.cat([grad.flatten() for grad in grads]).clone())
        self.optimizer.zero_grad(set_to_none=True)
        return float(self.gradients[-1].norm()), True
