import numpy as np
import pytest
import torch

from engine.grpo.log_probs import TokenScores
from engine.training import passes
from engine.training.batch import pad_rows
from engine.training.cuts import length_cuts
from engine.training.forward import score_tokens
from engine.training.passes import length_passes, row_passes
from engine.training.scoring import write_scores
from tests.training.test_update import gradients


def test_a_cut_is_made_where_it_saves_most_and_only_if_it_saves_more_than_its_cost():
    # After three rows it saves 3 · 10 tokens of padding, after four 4 · 8.
    lengths = np.array([10, 10, 10, 12, 20, 20])
    assert length_cuts(lengths, cost=31) == [4]
    assert length_cuts(lengths, cost=32) == []
    # The four rows on the left then save 3 · 2 by a cut of their own.
    assert length_cuts(lengths, cost=5) == [3, 4]


def test_rows_of_one_length_stay_together_and_in_order():
    batch = pad_rows([((1, 2), (3, 4, 5)) for _ in range(4)], device=torch.device("cpu"))
    (only,) = length_passes(torch.tensor([3, 0, 2]), batch)
    assert only.tolist() == [3, 0, 2]


def test_no_rows_need_no_pass(model):
    batch = pad_rows([((1,), (2,))], device=torch.device("cpu"))
    assert row_passes(model, torch.tensor([], dtype=torch.int64), batch) == []


def test_every_row_is_in_one_pass_and_passes_go_from_short_to_long(monkeypatch):
    monkeypatch.setitem(passes.PASS_COST, "cpu", 0)
    batch = pad_rows([((1, 2), (3,) * length) for length in (9, 1, 5, 1, 9)], device=torch.device("cpu"))
    taken = length_passes(torch.tensor([4, 3, 2, 1, 0]), batch)
    assert [part.tolist() for part in taken] == [[3, 1], [2], [4, 0]]


@pytest.mark.parametrize("aggregation", ["mean", "constant", "microbatch", "token"])
@pytest.mark.parametrize("off_policy", [False, True])
def test_passes_do_not_change_the_gradient(model, groups, rewards, monkeypatch, aggregation, off_policy):
    settings = {"grpo.aggregation": aggregation} | ({"grpo.epochs_per_rollout_batch": 2} if off_policy else {})
    whole = gradients(model, groups, rewards, **settings)
    cut = []
    monkeypatch.setattr(passes, "length_cuts", lambda lengths, cost: cut.append(lengths) or [1, 4])
    for one, other in zip(gradients(model, groups, rewards, **settings), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-7)
    assert cut


def test_scores_do_not_depend_on_the_passes(model, groups, monkeypatch):
    rows = [(group.prompt_token_ids, completion.token_ids) for group in groups for completion in group.completions]
    batch = pad_rows(rows, device=torch.device("cpu"))
    with torch.no_grad():
        whole = score_tokens(model, batch, temperature=1.0)
        monkeypatch.setitem(passes.PASS_COST, "cpu", 0)
        parts = length_passes(torch.arange(len(rows)), batch)
        found = TokenScores(torch.zeros_like(whole.log_probs), torch.zeros_like(whole.entropy))
        for part in parts:
            write_scores(found, part, score_tokens(model, batch.rows(part), temperature=1.0))
    assert len(parts) > 2
    for one, other in zip(found, whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
