"""One step of GRPO: sample, reward, compare, update."""

from collections.abc import Callable
from dataclasses import replace

from engine.config import RunConfig
from engine.training.batch import build_batch
from engine.training.clock import PhaseClock
from engine.training.draws import draw_groups
from engine.training.groups import assign_advantages
from engine.training.in_hand import StepInHand
from engine.training.optimizer import learning_rate
from engine.training.scoring import begin_update, completion_divergence, score_reference
from engine.training.setup import Setup
from engine.training.state import TrainingState, coefficients, with_controllers_moved
from engine.training.step import CutShort, Finished
from engine.training.summary import summarize_step, update_metrics
from engine.training.update import update_policy


def take_grpo_step(
    setup: Setup,
    config: RunConfig,
    state: TrainingState,
    in_hand: StepInHand | None,
    *,
    clock: PhaseClock,
    stop: Callable[[], bool],
) -> Finished | CutShort:
    """Take the step after `state`, or what is left to do of the step `in_hand`.

    Raises:
        NonFiniteUpdateError: after too many skipped updates in a row.
        StaleWeightsError: if the sampler's weights are not the trainer's.
    """
    model, step = setup.policy.model, state.step + 1
    number = config.grpo_step(step)
    if number == 1 and in_hand is None:
        begin_grpo(setup)
    drawn = in_hand.drawn if in_hand else draw_groups(setup, config, state, clock=clock, stop=stop)
    setup.engine.rest()
    with clock("update"):
        batch = build_batch(
            drawn.groups,
            drawn.rewards,
            truncated=config.truncation.completions,
            learn_from=config.grpo.learn_from,
            device=setup.policy.device,
        )
        batch = score_reference(model, setup.reference, batch, config)
        progress = (in_hand and in_hand.progress) or begin_update(model, batch, config, step=step)
    with clock("score"):
        divergence = completion_divergence(batch, progress.before, config)
        advantages = assign_advantages(drawn.groups, drawn.rewards, config, divergence=divergence, beta=state.beta)
        batch = batch.with_advantages(advantages.advantages)
    with clock("update"):
        rate = learning_rate(config.optimizer, step=number, total_steps=config.grpo.steps)
        setup.optimizer.set_learning_rate(rate)
        used = coefficients(state, config)
        whole = update_policy(
            model, setup.optimizer, batch, config, step=step, progress=progress, coefficients=used, stop=stop
        )
        if setup.reference and whole:
            setup.reference.follow(number)
    if not whole:
        return CutShort(StepInHand(drawn, progress))

    measured = update_metrics(batch, progress, config, used)
    measured["sampling/weight_version"] = float(state.weight_version)
    if config.kl.beta > 0:
        measured["kl/beta"] = state.beta
    state = with_controllers_moved(state, config, kl=measured.get("kl/update"), entropy=measured.get("entropy"))
    return Finished(
        replace(state, draws=state.draws + drawn.draws, num_tokens=state.num_tokens + drawn.num_tokens),
        rate,
        lambda besides: summarize_step(step, drawn, advantages, batch, progress, measured | dict(besides), config),
        judged=drawn.judged,
    )


def begin_grpo(setup: Setup) -> None:
    """Make what SFT has left the start of GRPO: its weights are the reference, the moments of its gradients are gone.

    So a run with SFT first equals one of SFT alone and another of GRPO that begins with its weights.
    """
    setup.optimizer.begin_anew()
    if setup.reference:
        setup.reference.begin_anew()
