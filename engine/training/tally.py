"""What an optimizer step adds up to, as plain numbers: they go into a checkpoint when a run stops inside a step."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from engine.grpo.loss import TokenLoss


@dataclass(slots=True)
class Tally:
    """Sums over the tokens of one optimizer step."""

    loss: float = 0.0
    grad_norm: float = 0.0
    skipped: bool = False
    tokens: int = 0
    clipped_low: int = 0
    clipped_high: int = 0
    clipped_dual: int = 0
    ratio_tokens: int = 0
    ratio_sum: float = 0.0
    kl_sum: float | None = None

    def add(self, loss: TokenLoss, kl: Tensor | None, mask: Tensor) -> None:
        """Count the tokens of a micro-batch; `kl` (B, T) is 0 at masked places, None without a reference."""
        self.clipped_low += int((loss.clipped_low & mask).sum())
        self.clipped_high += int((loss.clipped_high & mask).sum())
        self.clipped_dual += int((loss.clipped_dual & mask).sum())
        self.ratio_tokens += int(mask.sum())
        self.ratio_sum += float(loss.ratio[mask].double().sum())
        if kl is not None:
            self.kl_sum = (self.kl_sum or 0.0) + float(kl.double().sum())

    def metrics(self, *, dual_clip: bool) -> dict[str, float]:
        """Return the metrics of this optimizer step."""
        return _pooled([self], dual_clip=dual_clip)


def step_metrics(tallies: Sequence[Tally], *, dual_clip: bool) -> dict[str, float]:
    """Return the metrics of a step: loss and gradient norm as means over its optimizer steps, the rest over tokens."""
    metrics = _pooled(tallies, dual_clip=dual_clip)
    metrics.pop("kl", None)  # the step's own is that of the policy before the update
    last = _pooled(tallies[-1:], dual_clip=dual_clip)
    if "kl" in last:
        metrics["kl/update"] = last["kl"]
    return metrics | {
        "updates/optimizer_steps": float(len(tallies)),
        "updates/skipped": float(sum(tally.skipped for tally in tallies)),
    }


def _pooled(tallies: Sequence[Tally], *, dual_clip: bool) -> dict[str, float]:
    tokens = max(sum(tally.tokens for tally in tallies), 1)
    low, high = sum(tally.clipped_low for tally in tallies), sum(tally.clipped_high for tally in tallies)
    ratio_tokens = sum(tally.ratio_tokens for tally in tallies)
    metrics = {
        "loss": sum(tally.loss for tally in tallies) / len(tallies),
        "grad_norm": sum(tally.grad_norm for tally in tallies) / len(tallies),
        "clip_ratio/low_mean": low / tokens,
        "clip_ratio/high_mean": high / tokens,
        "clip_ratio/region_mean": (low + high) / tokens,
    }
    if dual_clip:
        metrics["clip_ratio/dual_mean"] = sum(tally.clipped_dual for tally in tallies) / tokens
    if ratio_tokens:
        metrics["ratio/mean"] = sum(tally.ratio_sum for tally in tallies) / ratio_tokens
        divergences = [tally.kl_sum for tally in tallies if tally.kl_sum is not None]
        if divergences:
            metrics["kl"] = sum(divergences) / ratio_tokens
    return metrics
