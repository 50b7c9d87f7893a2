import pytest
import torch

from benchmarks.trl_agreement import Case, cases, our_loss, tensors


def test_every_loss_of_trl_that_has_an_equal_here_is_compared_at_both_levels():
    compared = {(case.theirs, case.level) for case in cases()}
    assert compared == {
        (theirs, level) for theirs in ("grpo", "dr_grpo", "dapo", "bnpo", "cispo") for level in ("token", "sequence")
    }


@pytest.mark.parametrize("theirs", ["grpo", "dr_grpo", "dapo", "cispo"])
def test_our_side_does_not_depend_on_the_split_and_the_clip_acts(theirs):
    given = tensors(0)
    whole, *split = (our_loss(case, given) for case in cases() if case.theirs == theirs and case.level == "token")
    assert whole[2] > 0.05
    assert float(whole[1].norm()) > 0
    for _, gradient, _ in split[:2]:
        torch.testing.assert_close(gradient, whole[1], rtol=1e-6, atol=1e-9)


def test_another_aggregation_would_be_noticed():
    given = tensors(0)
    mean = our_loss(Case("grpo", "grpo_clip", "mean"), given)
    token = our_loss(Case("grpo", "grpo_clip", "token"), given)
    assert abs(mean[0] - token[0]) / abs(token[0]) > 1e-3
