"""Loss and gradient against TRL's GRPOTrainer on the same random tensors: `python -m benchmarks.trl_agreement`.

TRL is installed into an environment of its own under the user's cache folder (made once, some minutes; the
product does not depend on it). There, `GRPOTrainer._compute_loss` itself is called, its forward pass replaced by
given log-probs, and compared with `engine.grpo`, summed over micro-batches. Exits 1 above 1e-5 relative.
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from benchmarks.entry import ROOT
from benchmarks.trl_environment import default_folder, python_of

TOLERANCE = 1e-5
ROWS, TOKENS = 8, 48


class Case(NamedTuple):
    """One of TRL's losses and our fields for it."""

    theirs: str
    loss_type: str
    aggregation: str
    level: str = "token"
    dual_clip: float | None = None
    low: float = 0.2
    high: float = 0.28
    beta: float = 0.0
    micro_batches: int = 1

    @property
    def ours(self) -> str:
        """The fields in words."""
        words = [self.loss_type, self.aggregation]
        words += ["sequence ratio"] if self.level == "sequence" else []
        words += [f"dual_clip {self.dual_clip:g}"] if self.dual_clip else []
        words += [f"k3 at {self.beta:g}"] if self.beta else []
        return ", ".join(words)


def cases() -> Iterator[Case]:
    """Yield every comparison; `bnpo` averages each micro-batch by itself, so it has an equal for one alone."""
    names = {"grpo": "mean", "dr_grpo": "constant", "dapo": "token", "bnpo": "token", "cispo": "token"}
    for theirs, aggregation in names.items():
        loss_type = "cispo" if theirs == "cispo" else "grpo_clip"
        base = Case(theirs, loss_type, aggregation)
        # A sequence's ratio is a mean over tokens: only a narrow clip acts on it.
        variants = [base, base._replace(level="sequence", low=0.02, high=0.03), base._replace(beta=0.04)]
        if theirs != "cispo":
            variants.append(base._replace(dual_clip=1.5))
        for variant in variants:
            for parts in (1,) if theirs == "bnpo" else (1, 2, 4):
                yield variant._replace(micro_batches=parts)


class Tensors(NamedTuple):
    """The input of both: (B, T), advantages (B,)."""

    log_probs: Any
    old_log_probs: Any
    mask: Any
    advantages: Any
    ref_log_probs: Any


def tensors(seed: int) -> Tensors:
    """Return random log-probs of a policy and the one it moved from, unequal lengths, one row without advantage."""
    import torch

    random = torch.Generator().manual_seed(seed)
    old = -2 * torch.rand(ROWS, TOKENS, generator=random) - 0.1
    log_probs = old + 0.25 * torch.randn(ROWS, TOKENS, generator=random)
    lengths = torch.randint(1, TOKENS + 1, (ROWS,), generator=random)
    advantages = torch.randn(ROWS, generator=random)
    advantages[3] = 0.0
    reference = old + 0.5 * torch.randn(ROWS, TOKENS, generator=random)
    return Tensors(log_probs, old, torch.arange(TOKENS)[None, :] < lengths[:, None], advantages, reference)


def their_loss(case: Case, given: Tensors) -> tuple[float, Any]:
    """Return TRL's loss and gradient, added up over the micro-batches of one optimizer step."""
    import torch
    from trl import GRPOTrainer

    log_probs = given.log_probs.clone().requires_grad_()
    total = 0.0
    for rows in torch.arange(ROWS).chunk(case.micro_batches):
        loss = GRPOTrainer._compute_loss(
            _trainer(case, log_probs[rows]),
            None,
            {
                "prompt_ids": torch.zeros(len(rows), 1, dtype=torch.int64),
                "prompt_mask": torch.ones(len(rows), 1, dtype=torch.int64),
                "completion_ids": torch.zeros(len(rows), TOKENS, dtype=torch.int64),
                "completion_mask": given.mask[rows].long(),
                "advantages": given.advantages[rows],
                "old_per_token_logps": given.old_log_probs[rows],
                "ref_per_token_logps": given.ref_log_probs[rows],
                "num_items_in_batch": given.mask.sum(),
            },
        )
        loss.backward()
        total += float(loss.detach())
    return total, log_probs.grad


def _trainer(case: Case, log_probs: Any) -> Any:
    """Return what `_compute_loss` reads of its trainer, in training mode, with the forward pass already done."""
    import torch

    def same(tensor: Any, **_: Any) -> Any:
        return tensor

    entropies = torch.zeros_like(log_probs).detach()
    return SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (log_probs, entropies, None),
        loss_type=case.theirs,
        importance_sampling_level=case.level,
        epsilon_low=case.low,
        # TRL's cispo takes the cap itself where the other losses take its distance from 1.
        epsilon_high=1 + case.high if case.theirs == "cispo" else case.high,
        beta=case.beta,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        aux_loss_enabled=False,
        use_vllm=False,
        _entropy_bonus_enabled=False,
        max_completion_length=TOKENS,
        current_gradient_accumulation_steps=case.micro_batches,
        model=SimpleNamespace(training=True),
        args=SimpleNamespace(
            delta=case.dual_clip, steps_per_generation=case.micro_batches, use_bias_correction_kl=False
        ),
        accelerator=SimpleNamespace(num_processes=1, gather=same, reduce=same, sync_gradients=True),
        _metrics=defaultdict(lambda: defaultdict(list)),
    )


def our_loss(case: Case, given: Tensors) -> tuple[float, Any, float]:
    """Return our loss and gradient, added up over the micro-batches, and the share of tokens that a clip decides."""
    import torch

    from engine.grpo.aggregation import aggregate, aggregation_totals, aggregation_weights
    from engine.grpo.kl import kl_estimate
    from engine.grpo.loss import LOSSES

    log_probs = given.log_probs.clone().requires_grad_()
    totals = aggregation_totals(given.mask)
    total = clipped = 0.0
    for rows in torch.arange(ROWS).chunk(case.micro_batches):
        result = LOSSES[case.loss_type](
            log_probs[rows],
            given.advantages[rows],
            given.mask[rows],
            old_log_probs=given.old_log_probs[rows],
            ratio_level=case.level,  # type: ignore[arg-type]
            clip_eps_low=case.low,
            clip_eps_high=case.high,
            dual_clip=case.dual_clip,
        )
        weights = aggregation_weights(
            given.mask[rows],
            case.aggregation,  # type: ignore[arg-type]
            totals=totals,
            constant=TOKENS,
        )
        kl = kl_estimate(log_probs[rows], given.ref_log_probs[rows], "k3", mask=given.mask[rows])
        loss = aggregate(result.loss + case.beta * kl, weights)
        loss.backward()
        total += float(loss.detach())
        decided = (result.clipped_low | result.clipped_high | result.clipped_dual) & given.mask[rows]
        clipped += int(decided.sum()) / totals.tokens
    return total, log_probs.grad, clipped


def compare(seeds: int) -> bool:
    """Print one line per case, the largest relative differences over `seeds` draws; return whether all agree.

    A loss is a difference of sums that nearly cancel, so its relative error is the larger of the two.
    """
    import torch
    import trl

    torch.set_num_threads(1)
    print(f"TRL {trl.__version__}, torch {torch.__version__}, {ROWS} rows of up to {TOKENS} tokens, {seeds} draws")
    print(f"{'TRL loss_type':<14} {'ours':<44} {'micro-batches':>13} {'clipped':>8} {'loss':>10} {'gradient':>10}")
    agree = True
    for case in cases():
        worst_loss = worst_gradient = clipped = 0.0
        for seed in range(seeds):
            given = tensors(seed)
            loss, gradient, share = our_loss(case, given)
            other, other_gradient = their_loss(case, given)
            clipped += share / seeds
            worst_loss = max(worst_loss, abs(loss - other) / abs(other))
            worst_gradient = max(worst_gradient, float((gradient - other_gradient).norm() / other_gradient.norm()))
        agree &= worst_loss < TOLERANCE and worst_gradient < TOLERANCE
        print(
            f"{case.theirs:<14} {case.ours:<44} {case.micro_batches:>13} {clipped:>8.1%} "
            f"{worst_loss:>10.1e} {worst_gradient:>10.1e}"
        )
    print(f"{'all agree' if agree else 'NOT all agree'} to {TOLERANCE:g} relative")
    return agree


def main() -> int:
    """Compare inside TRL's environment; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, default=default_folder())
    parser.add_argument("--seeds", type=int, default=20, help="random draws per case")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return 0 if compare(given.seeds) else 1
    python = python_of(given.environment)
    command = [python, "-m", "benchmarks.trl_agreement", "--inside", "--seeds", str(given.seeds)]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
