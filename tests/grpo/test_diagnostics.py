import torch

from engine.grpo.diagnostics import ratio_spread, sampling_logp_difference

NAN = float("nan")


def test_the_ratio_is_summed_up_over_unmasked_tokens(array):
    spread = ratio_spread(array([[0.5, 2.0, NAN]]), array([[1, 1, 0]], "bool"))
    assert spread == (1.25, 0.5, 2.0)


def test_sampler_and_policy_differ_by_absolute_nats(array):
    sampler, policy = array([[-1.0, -2.0, 0.0]]), array([[-1.5, -1.0, -9.0]])
    spread = sampling_logp_difference(sampler, policy, array([[1, 1, 0]], "bool"))
    assert (spread.mean, spread.max) == (0.75, 1.0)


def test_of_no_tokens_everything_is_zero(array):
    assert ratio_spread(array([[NAN]]), array([[0]], "bool")) == (0, 0, 0)


def test_values_in_a_graph_are_read_without_it():
    ratio = torch.tensor([2.0], requires_grad=True)
    assert ratio_spread(ratio, torch.tensor([True])).mean == 2.0
