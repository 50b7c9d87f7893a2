"""One step of SFT: a batch of demonstrations, the loss on their responses, one optimizer step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from engine.config import RunConfig
from engine.config.sections import SftLoss
from engine.errors import TaskError
from engine.grpo.aggregation import Aggregation, aggregate, aggregation_totals, aggregation_weights
from engine.grpo.loss import policy_gradient_loss
from engine.policy.gradient_checkpointing import checkpointing_layers
from engine.policy.policy import Policy
from engine.training.batch import Batch, pad_rows
from engine.training.clock import PhaseClock
from engine.training.forward import score_tokens
from engine.training.optimizer import OptimizerStep, learning_rate
from engine.training.passes import row_passes
from engine.training.scoring import row_parts, some_rows
from engine.training.seeds import derive_seed, shuffled
from engine.training.setup import Setup
from engine.training.state import TrainingState
from engine.training.step import CutShort, Finished
from engine.types import Demonstration, StepRecord

AGGREGATIONS: Mapping[SftLoss, Aggregation] = {"token": "token", "sequence": "mean"}


@dataclass(frozen=True, slots=True)
class Taught:
    """An optimizer step on demonstrations: its loss, the norm before clipping, whether it was skipped.

    `entropy` is that of the policy before it, over the response tokens, in nats; None where none was computed.
    """

    loss: float
    grad_norm: float
    skipped: bool
    entropy: float | None


def take_sft_step(
    setup: Setup, config: RunConfig, state: TrainingState, *, clock: PhaseClock, stop: Callable[[], bool]
) -> Finished | CutShort:
    """Take the step after `state`. A stop inside it leaves nothing: it is begun again with the same examples.

    Raises:
        NonFiniteUpdateError: after too many skipped updates in a row.
    """
    step = state.step + 1
    with clock("update"):
        places = example_places(len(setup.demonstrations), config.sft.batch_size, step=step, seed=config.seed)
        batch = example_batch(setup.policy, [setup.demonstrations[place] for place in places])
        rate = learning_rate(config.optimizer, step=step, total_steps=config.sft.steps, peak=config.sft_learning_rate)
        setup.optimizer.set_learning_rate(rate)
        taught = teach(setup.policy.model, setup.optimizer, batch, config, step=step, stop=stop)
    if taught is None:
        return CutShort()
    tokens = int(batch.prompt_lengths.sum() + batch.response_lengths.sum())
    metrics = _metrics(taught)
    return Finished(
        replace(state, num_tokens=state.num_tokens + tokens),
        rate,
        lambda besides: StepRecord(step, metrics | dict(besides)),
    )


def example_places(n: int, size: int, *, step: int, seed: int) -> list[int]:
    """Return which `size` of `n` examples 1-based `step` takes: each epoch goes through all in an order of its own.

    A function of the step alone. A batch that an epoch ends in is filled up from the next one.
    """
    epochs = [divmod(place, n) for place in range((step - 1) * size, step * size)]
    orders = {epoch: shuffled(n, derive_seed(seed, "sft", epoch)) for epoch in {epoch for epoch, _ in epochs}}
    return [int(orders[epoch][place]) for epoch, place in epochs]


def example_batch(policy: Policy, examples: Sequence[Demonstration]) -> Batch:
    """Return the batch of `examples`: prompt and response tokenised apart, the end token, an advantage of 1 each.

    Raises:
        TaskError: if a prompt has no token.
    """
    rows = [(policy.encode(each.prompt), policy.encode_response(each.response)) for each in examples]
    for each, (prompt, _) in zip(examples, rows, strict=True):
        if not prompt:
            raise TaskError(f"sft: the prompt {each.prompt!r} has no token in this tokenizer; give it some text")
    batch = pad_rows(rows, device=policy.device)
    return replace(batch, advantages=torch.ones_like(batch.advantages))


def teach(
    model: Any, optimizer: OptimizerStep, batch: Batch, config: RunConfig, *, step: int, stop: Callable[[], bool]
) -> Taught | None:
    """Take the optimizer step on `batch`; None, and nothing changed, if `stop()` came before one of its micro-batches.

    The loss of a response token is -log p, at temperature 1: that of `no_baseline` under an advantage of 1.

    Raises:
        NonFiniteUpdateError: after too many skipped updates in a row.
    """
    totals = aggregation_totals(batch.loss_mask)
    seed = derive_seed(config.seed, "sft/entropy", step)
    measured = some_rows(len(batch), config.logging.entropy_share, seed=seed).to(batch.device)
    loss, entropy, tokens = 0.0, 0.0, 0
    for micro in row_parts(torch.arange(len(batch)), config.micro_batch_size):
        if stop():
            optimizer.drop_gradients()
            return None
        for chosen in row_passes(model, micro, batch):
            rows = batch.rows(chosen)
            with checkpointing_layers(model):
                scores = score_tokens(
                    model,
                    rows,
                    temperature=1.0,
                    logits_memory=config.model.logits_memory,
                    entropy_rows=measured[chosen],
                )
                token_loss = policy_gradient_loss(scores.log_probs, rows.advantages, rows.loss_mask).loss
                weights = aggregation_weights(rows.loss_mask, AGGREGATIONS[config.sft.loss], totals=totals)
                value = aggregate(token_loss, weights)
                value.backward()
            loss += float(value.detach())
            known = rows.response_mask & ~torch.isnan(scores.entropy)
            entropy += float(scores.entropy[known].double().sum())
            tokens += int(known.sum())
    grad_norm, changed = optimizer.apply(loss, step=step)
    return Taught(loss, grad_norm, not changed, entropy / tokens if tokens else None)


def _metrics(taught: Taught) -> dict[str, float]:
    metrics = {
        "loss": taught.loss,
        "grad_norm": taught.grad_norm,
        "updates/optimizer_steps": 1.0,
        "updates/skipped": float(taught.skipped),
    }
    return metrics if taught.entropy is None else metrics | {"entropy": taught.entropy}
