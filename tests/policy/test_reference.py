import pytest
import torch

from engine.errors import CheckpointError
from engine.policy.reference import ReferencePolicy


@pytest.fixture
def model() -> torch.nn.Module:
    """One trained weight of 1 and one frozen weight of 5."""
    model = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(model.weight, 1.0)
    torch.nn.init.constant_(model.bias, 5.0)
    model.bias.requires_grad_(False)
    return model


def move_to(model: torch.nn.Module, value: float) -> None:
    with torch.no_grad():
        model.weight.fill_(value)


def weight_in_place(reference: ReferencePolicy, model: torch.nn.Module) -> float:
    with reference.in_place():
        return model.weight.item()


def test_the_start_stays_while_the_policy_moves(model):
    reference = ReferencePolicy(model)
    move_to(model, 2.0)
    reference.follow(1)
    assert weight_in_place(reference, model) == 1.0
    assert model.weight.item() == 2.0


@pytest.mark.parametrize("kind", ["start", "ema", "copy"])
def test_a_reference_that_begins_anew_starts_at_the_policy_of_that_time(model, kind):
    reference = ReferencePolicy(model, kind=kind, ema_decay=0.75)
    move_to(model, 2.0)
    reference.begin_anew()
    move_to(model, 4.0)
    assert weight_in_place(reference, model) == 2.0
    reference.follow(1)
    assert weight_in_place(reference, model) == (2.5 if kind == "ema" else 2.0)


def test_the_policy_gets_its_weights_back_after_a_failure(model):
    reference = ReferencePolicy(model)
    move_to(model, 2.0)
    with pytest.raises(RuntimeError, match="inside"), reference.in_place():
        raise RuntimeError("inside")
    assert model.weight.item() == 2.0


def test_an_average_keeps_its_decay_and_takes_the_rest(model):
    reference = ReferencePolicy(model, kind="ema", ema_decay=0.75)
    move_to(model, 2.0)
    reference.follow(1)
    assert weight_in_place(reference, model) == 1.25
    reference.follow(2)
    assert weight_in_place(reference, model) == 1.4375


def test_an_average_of_a_bfloat16_policy_does_not_stand_still():
    model = torch.nn.Linear(1, 1, dtype=torch.bfloat16)
    move_to(model, 1.0)
    reference = ReferencePolicy(model, kind="ema", ema_decay=0.999)
    move_to(model, 1.0078125)  # one step of bfloat16 above
    for step in range(2000):
        reference.follow(step + 1)
    assert float(reference.tensors()["weight"]) == pytest.approx(1.0078125 - 0.0078125 * 0.999**2000, rel=1e-4)
    with reference.in_place():
        assert model.weight.dtype == torch.bfloat16


def test_a_copy_is_renewed_at_its_steps_only(model):
    reference = ReferencePolicy(model, kind="copy", copy_every=3)
    move_to(model, 2.0)
    reference.follow(1)
    reference.follow(2)
    assert weight_in_place(reference, model) == 1.0
    reference.follow(3)
    assert weight_in_place(reference, model) == 2.0


def test_only_what_is_trained_is_kept(model):
    assert list(ReferencePolicy(model).tensors()) == ["weight"]


def test_weights_of_another_model_are_refused(model):
    reference = ReferencePolicy(model)
    reference.restore({"weight": torch.full((1, 1), 7.0)})
    assert weight_in_place(reference, model) == 7.0
    with pytest.raises(CheckpointError, match="does not fit this run's model"):
        reference.restore({"weight": torch.zeros(2, 1)})
