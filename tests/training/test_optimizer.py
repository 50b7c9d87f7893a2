import math

import pytest
import torch

from engine.config import parse_config
from engine.policy.adapter import add_lora
from engine.policy.policy import load_policy
from engine.training.optimizer import OptimizerStep, learning_rate, make_optimizer


def rates(total: int, **settings) -> list[float]:
    config = parse_config({"optimizer.learning_rate": 1e-5, "grpo.steps": total} | settings).optimizer
    return [learning_rate(config, step=step, total_steps=total) for step in range(1, total + 1)]


def test_a_constant_schedule_stays_at_the_peak():
    assert rates(4) == [1e-5] * 4


def test_warm_up_rises_evenly_and_reaches_the_peak_at_its_last_step():
    assert rates(6, **{"optimizer.warmup_steps": 4}) == pytest.approx([2.5e-6, 5e-6, 7.5e-6, 1e-5, 1e-5, 1e-5])


def test_a_linear_schedule_goes_on_where_a_resumed_run_left_it():
    """After 3 of 10 steps the next one has 0.7 of the peak."""
    assert rates(10, **{"optimizer.schedule": "linear"})[3] == pytest.approx(7e-6, abs=1e-12)


def test_a_cosine_schedule_is_at_half_the_peak_half_way():
    values = rates(10, **{"optimizer.schedule": "cosine"})
    assert values[0] == pytest.approx(1e-5)
    assert values[5] == pytest.approx(5e-6)
    assert values[9] == pytest.approx(1e-5 * 0.5 * (1 + math.cos(0.9 * math.pi)))


def test_decay_starts_after_the_warm_up():
    values = rates(12, **{"optimizer.schedule": "linear", "optimizer.warmup_steps": 2})
    assert values[:3] == pytest.approx([5e-6, 1e-5, 1e-5])
    assert values[7] == pytest.approx(5e-6)


def test_frozen_weights_beside_an_adapter_are_not_optimized():
    model = add_lora(load_policy("tiny-math"), 4, 8.0).model
    optimizer = make_optimizer(model, parse_config({}).optimizer)
    optimized = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    adapters = [parameter for name, parameter in model.named_parameters() if "lora_" in name]
    assert {id(parameter) for parameter in optimized} == {id(parameter) for parameter in adapters}
    sum(parameter.sum() for parameter in adapters).backward()
    optimizer.step()
    assert len(optimizer.state_dict()["state"]) == len(adapters)


def test_a_phase_may_have_a_peak_of_its_own():
    config = parse_config({"optimizer.learning_rate": 1e-5, "optimizer.schedule": "linear"}).optimizer
    values = [learning_rate(config, step=step, total_steps=4, peak=1e-3) for step in (1, 3)]
    assert values == pytest.approx([1e-3, 5e-4])


def test_an_optimizer_that_begins_anew_steps_as_a_fresh_one_does():
    def step_of(warmed_up: bool) -> float:
        weight = torch.nn.Parameter(torch.ones(2, 2))
        model = torch.nn.ParameterList([weight])
        optimizer = OptimizerStep(model, make_optimizer(model, parse_config({}).optimizer), 1e9, 2)
        if warmed_up:
            weight.grad = torch.full_like(weight, -7.0)
            optimizer.apply(1.0, step=1)
            weight.grad = torch.full_like(weight, math.nan)
            optimizer.apply(1.0, step=2)
            optimizer.begin_anew()
            assert optimizer.skipped_in_a_row == 0
        before = weight[0, 0].item()
        weight.grad = torch.full_like(weight, 0.5)
        optimizer.apply(1.0, step=3)
        return weight[0, 0].item() - before

    # The first step of AdamW is the learning rate against the sign of the gradient.
    assert step_of(warmed_up=True) == pytest.approx(step_of(warmed_up=False), rel=1e-3)
    assert step_of(warmed_up=False) == pytest.approx(-1e-4, rel=1e-3)
