"""The groups of a step: drawn, rewarded, and under dynamic sampling drawn again until enough of them teach."""

from collections.abc import Callable

from engine.config import RunConfig
from engine.rewards.composition import compose
from engine.rewards.length import with_overlong_penalty
from engine.rewards.scoring import score_groups
from engine.training.clock import PhaseClock
from engine.training.groups import Drawn, RewardedGroup, assign_advantages, sample_groups
from engine.training.seeds import derive_seed
from engine.training.setup import Setup
from engine.training.state import TrainingState
from engine.training.weight_version import check_weight_version


def draw_groups(
    setup: Setup, config: RunConfig, state: TrainingState, *, clock: PhaseClock, stop: Callable[[], bool]
) -> Drawn:
    """Return the groups of the step after `state`.

    Under dynamic sampling (Yu et al. 2025, "DAPO", section 3.2) flat groups are left out and further prompts drawn,
    P at a time, until P groups are mixed; where the most draws allowed do not suffice, or `stop()` is true, flat
    groups fill the batch up: its size, and with it the denominators, stays the same.

    Raises:
        StaleWeightsError: if the sampler's weights are not the trainer's.
    """
    wanted = config.prompts_per_step
    if not config.rollout.dynamic_sampling:
        return Drawn(tuple(_draw(setup, config, state, 0, clock)))
    mixed: list[RewardedGroup] = []
    flat: list[RewardedGroup] = []
    draws = 0
    while draws < config.rollout.dynamic_sampling_max_draws and len(mixed) < wanted and not (draws and stop()):
        drawn = _draw(setup, config, state, draws, clock)
        stats = assign_advantages([each.group for each in drawn], [each.rewards for each in drawn], config)
        for member, is_flat in zip(drawn, stats.flat, strict=True):
            (flat if is_flat else mixed).append(member)
        draws += 1
    missing = max(0, wanted - len(mixed))
    return Drawn(trained=(*mixed[:wanted], *flat[:missing]), left_out=(*mixed[wanted:], *flat[missing:]), draws=draws)


def _draw(setup: Setup, config: RunConfig, state: TrainingState, draw: int, clock: PhaseClock) -> list[RewardedGroup]:
    problems = setup.task.train_batch(state.draws + draw + 1, config.prompts_per_step, seed=config.seed)
    again = (draw,) if draw else ()
    step = config.grpo_step(state.step + 1)
    with clock("rollout"):
        groups = sample_groups(
            setup.policy,
            setup.engine,
            setup.prompt,
            problems,
            n=config.rollout.group_size,
            sampling=setup.sampling,
            seed=derive_seed(config.seed, "rollout", step, *again),
        )
    check_weight_version(setup.engine, setup.optimizer.changes)
    with clock("score"):
        rewards = compose(
            groups,
            score_groups(groups, setup.reward),
            config.reward,
            max_tokens=config.rollout.max_tokens,
            seed=derive_seed(config.seed, "placebo", step, draw),
        )
        if config.truncation.overlong_buffer is not None:
            rewards = with_overlong_penalty(
                groups,
                rewards,
                max_tokens=config.rollout.max_tokens,
                buffer=config.truncation.overlong_buffer,
                penalty=config.truncation.overlong_penalty,
            )
        return [RewardedGroup(group, members) for group, members in zip(groups, rewards, strict=True)]
