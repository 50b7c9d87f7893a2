import pytest

from engine.config import parse_config
from engine.training.state import (
    TrainingState,
    coefficients,
    forked_state,
    start_state,
    with_controllers_moved,
    with_evaluation,
)
from engine.training.stopping import early_end


def test_a_run_begins_with_the_coefficients_of_its_config():
    config = parse_config({"kl.beta": 0.04, "entropy.bonus": 0.002})
    used = coefficients(start_state(config), config)
    assert (used.beta, used.entropy_bonus) == (0.04, 0.002)


def test_a_kl_term_in_the_reward_is_not_in_the_loss_as_well():
    config = parse_config({"kl.beta": 0.04, "kl.placement": "reward"})
    assert coefficients(start_state(config), config).beta == 0.0


def test_controllers_move_only_under_a_target():
    fixed = parse_config({"kl.beta": 0.04, "entropy.bonus": 0.002})
    moved = with_controllers_moved(start_state(fixed), fixed, kl=9.0, entropy=0.1)
    assert (moved.beta, moved.entropy_bonus, moved.entropy) == (0.04, 0.002, 0.1)
    aimed = parse_config({"kl.beta": 0.04, "kl.target": 0.1, "kl.gain": 0.5, "entropy.target": 0.3})
    moved = with_controllers_moved(start_state(aimed), aimed, kl=9.0, entropy=0.1)
    assert (moved.beta, moved.entropy_bonus) == (pytest.approx(0.044), 0.001)


def test_a_fork_keeps_its_place_in_the_data_and_starts_its_controllers_anew():
    parent = TrainingState(
        step=7, draws=9, num_tokens=100, weight_version=28, beta=3.0, best_accuracy=0.9, evaluations_without_gain=4
    )
    child = forked_state(parent, parse_config({"kl.beta": 0.04}))
    assert (child.step, child.draws, child.num_tokens, child.weight_version) == (7, 9, 100, 28)
    assert (child.beta, child.best_accuracy, child.evaluations_without_gain) == (0.04, None, 0)


def test_only_a_gain_above_the_smallest_one_resets_the_patience():
    state = TrainingState()
    counts = []
    for accuracy in (0.50, 0.52, 0.56, 0.40, 0.57, 0.62):
        state = with_evaluation(state, accuracy, min_gain=0.05)
        counts.append((state.best_accuracy, state.evaluations_without_gain))
    assert counts == [(0.50, 0), (0.50, 1), (0.56, 0), (0.56, 1), (0.56, 2), (0.62, 0)]


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, None),
        ({"max_minutes": 2.0}, None),
        ({"max_minutes": 1.0}, "time_limit"),
        ({"max_sampled_tokens": 1001}, None),
        ({"max_sampled_tokens": 1000}, "token_limit"),
        ({"patience": 4}, None),
        ({"patience": 3}, "no_gain"),
    ],
)
def test_a_run_ends_early_for_the_limit_it_has_reached(settings, kind):
    state = TrainingState(seconds=61.0, num_tokens=1000, best_accuracy=0.5, evaluations_without_gain=3)
    config = parse_config({f"stopping.{name}": value for name, value in settings.items()})
    end = early_end(state, config.stopping)
    assert (end.kind if end else None) == kind
