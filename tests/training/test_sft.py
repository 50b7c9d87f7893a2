"""SFT on a hand-made model whose next token depends on the present one alone.

Its tokens are end, a, b, c; in halvings, p(b|a) = 1 and p(c|a) = 2, p(c|b) = 2, p(end|c) = 1.
"""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from engine.config import parse_config
from engine.errors import TaskError
from engine.policy.policy import Policy, PolicyError
from engine.training.optimizer import OptimizerStep
from engine.training.sft import example_batch, example_places, teach
from engine.types import Demonstration
from tests.training.frozen_optimizer import FrozenOptimizer

END = 0
BIGRAMS = [
    [1 / 4, 1 / 4, 1 / 4, 1 / 4],
    [1 / 8, 1 / 8, 1 / 2, 1 / 4],
    [1 / 4, 1 / 4, 1 / 4, 1 / 4],
    [1 / 2, 1 / 4, 1 / 8, 1 / 8],
]
# A prompt a; the response b c end costs 1, 2, 1 halvings, the response c end costs 2, 1.
EXAMPLES = [Demonstration("a", "bc"), Demonstration("a", "c")]
LN2 = math.log(2)


class Letters:
    """A tokenizer of one token a letter, which begins every text that may stand alone with an end token."""

    eos_token_id: int | None = END

    def __init__(self, begins_with: tuple[int, ...] = ()) -> None:
        self._begins_with = begins_with

    def __call__(self, text: str, add_special_tokens: bool = True) -> SimpleNamespace:
        ids = [0 if letter == "." else "abc".index(letter) + 1 for letter in text]
        return SimpleNamespace(input_ids=[*self._begins_with, *ids] if add_special_tokens else ids)


@pytest.fixture
def bigrams() -> Policy:
    config = Qwen2Config(
        vocab_size=4,
        hidden_size=4,
        intermediate_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        tie_word_embeddings=False,
    )
    model = Qwen2ForCausalLM(config).eval()
    with torch.no_grad():
        model.model.layers[0].self_attn.o_proj.weight.zero_()
        model.model.layers[0].mlp.down_proj.weight.zero_()
        # A unit vector of length 1 in four dimensions is normed to length 2.
        model.model.embed_tokens.weight.copy_(torch.eye(4))
        model.lm_head.weight.copy_(torch.tensor(BIGRAMS).log().T / 2)
    return Policy(model, Letters())


def taught(policy: Policy, examples=EXAMPLES, **settings):
    config = parse_config({"sft.steps": 1, "grpo.steps": 0} | settings)
    result = teach(
        policy.model, FrozenOptimizer(policy.model), example_batch(policy, examples), config, step=1, stop=lambda: False
    )
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("loss", "halvings"),
    [("token", (1 + 2 + 1 + 2 + 1) / 5), ("sequence", ((1 + 2 + 1) / 3 + (2 + 1) / 2) / 2)],
)
def test_the_loss_is_the_mean_over_tokens_or_over_the_means_of_sequences(bigrams, loss, halvings):
    assert taught(bigrams, **{"sft.loss": loss}).loss == pytest.approx(halvings * LN2, abs=1e-5)


def test_the_entropy_is_that_of_the_distributions_the_response_was_read_with(bigrams):
    """Of a and c 7/4 halvings, of b 2: read are a b c, and a c."""
    assert taught(bigrams).entropy == pytest.approx((7 / 4 + 2 + 7 / 4 + 7 / 4 + 7 / 4) / 5 * LN2, abs=1e-5)
    assert taught(bigrams, **{"logging.entropy_share": 0.0}).entropy is None
    one = taught(bigrams, **{"logging.entropy_share": 0.5}).entropy
    assert min(abs(one - (11 / 6) * LN2), abs(one - (7 / 4) * LN2)) < 1e-5


def test_prompt_and_response_are_tokenised_apart_and_the_end_token_is_there_once(bigrams):
    policy = Policy(bigrams.model, Letters(begins_with=(3,)))
    batch = example_batch(policy, [Demonstration("a", "b."), Demonstration("ab", "c")])
    assert batch.input_ids.tolist() == [[3, 1, 2, END, 0], [3, 1, 2, 3, END]]
    assert batch.response_ids.tolist() == [[2, END], [3, END]]
    assert batch.loss_mask.tolist() == [[True, True], [True, True]]
    assert batch.prompt_lengths.tolist() == [2, 3]
    assert batch.advantages.tolist() == [1.0, 1.0]


def test_without_an_end_token_or_a_prompt_there_is_nothing_to_learn_from(bigrams):
    endless = Letters()
    endless.eos_token_id = None
    with pytest.raises(PolicyError, match="has no end token"):
        example_batch(Policy(bigrams.model, endless), EXAMPLES)
    with pytest.raises(TaskError, match="the prompt '' has no token"):
        example_batch(bigrams, [Demonstration("", "b")])


@pytest.fixture
def small(model) -> Policy:
    """The random model of 32 tokens, put to sequences of unequal lengths."""
    return Policy(model, Letters())


UNEQUAL = [
    Demonstration("a" * prompt, "abc"[:kind] * response)
    for prompt, kind, response in [
        (1, 1, 9),
        (5, 3, 2),
        (2, 2, 1),
        (3, 3, 1),
        (1, 2, 3),
        (4, 1, 1),
        (2, 3, 3),
        (1, 2, 2),
    ]
]


def gradient(policy: Policy, **settings) -> torch.Tensor:
    config = parse_config({"sft.steps": 1, "rollout_batch_size": 8, "group_size": 4} | settings)
    optimizer = FrozenOptimizer(policy.model)
    assert teach(policy.model, optimizer, example_batch(policy, UNEQUAL), config, step=1, stop=lambda: False)
    return optimizer.gradients[0]


@pytest.mark.parametrize("loss", ["token", "sequence"])
def test_the_gradient_equals_autograd_on_the_cross_entropy(small, loss):
    sums, lengths = [], []
    for each in UNEQUAL:
        prompt, response = small.encode(each.prompt), small.encode_response(each.response)
        logits = small.model(torch.tensor([[*prompt, *response]])).logits[0, len(prompt) - 1 : -1]
        sums.append(torch.nn.functional.cross_entropy(logits, torch.tensor(response), reduction="sum"))
        lengths.append(len(response))
    written_out = (
        torch.stack(sums).sum() / sum(lengths)
        if loss == "token"
        else (torch.stack(sums) / torch.tensor(lengths)).mean()
    )
    small.model.zero_grad()
    written_out.backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in small.model.parameters()]).clone()
    small.model.zero_grad()
    actual = gradient(small, **{"sft.loss": loss})
    assert float((actual - expected).norm() / expected.norm()) < 1e-5


@pytest.mark.parametrize("loss", ["token", "sequence"])
@pytest.mark.parametrize("micro_batches", [2, 4, 8])
def test_micro_batches_do_not_change_the_gradient(small, loss, micro_batches):
    whole = gradient(small, **{"sft.loss": loss})
    split = gradient(small, **{"sft.loss": loss, "grpo.gradient_accumulation_steps": micro_batches})
    assert float((whole - split).norm() / whole.norm()) < 1e-6


def test_the_gradient_does_not_depend_on_the_sampling_temperature(small):
    assert torch.equal(gradient(small), gradient(small, **{"rollout.temperature": 0.5}))


def test_a_stop_between_micro_batches_changes_nothing_and_leaves_no_gradient(small):
    config = parse_config({"sft.steps": 1, "rollout_batch_size": 8, "group_size": 4, "gradient_accumulation_steps": 4})
    batch = example_batch(small, UNEQUAL)
    before = [parameter.detach().clone() for parameter in small.model.parameters()]
    for stop_at in (1, 3):
        asked = itertools.count(1)
        optimizer = OptimizerStep(small.model, torch.optim.SGD(small.model.parameters(), lr=1.0), 1.0, 5)
        result = teach(small.model, optimizer, batch, config, step=1, stop=lambda a=asked, at=stop_at: next(a) == at)
        assert result is None
        assert all(parameter.grad is None for parameter in small.model.parameters())
    assert all(torch.equal(old, new) for old, new in zip(before, small.model.parameters(), strict=True))


class TestExamplePlaces:
    def test_each_epoch_goes_through_all_examples_in_an_order_of_its_own(self):
        drawn = [place for step in range(1, 7) for place in example_places(12, 4, step=step, seed=0)]
        assert sorted(drawn[:12]) == sorted(drawn[12:]) == list(range(12))
        assert drawn[:12] != drawn[12:]

    def test_a_batch_that_an_epoch_ends_in_is_filled_up_from_the_next(self):
        drawn = [place for step in range(1, 6) for place in example_places(10, 4, step=step, seed=0)]
        assert sorted(drawn[:10]) == sorted(drawn[10:]) == list(range(10))

    def test_a_batch_larger_than_all_examples_goes_through_them_several_times(self):
        places = example_places(3, 8, step=1, seed=0)
        assert sorted(places[:3]) == sorted(places[3:6]) == [0, 1, 2]

    def test_they_follow_from_step_and_seed_alone(self):
        assert example_places(100, 8, step=5, seed=1) == example_places(100, 8, step=5, seed=1)
        assert example_places(100, 8, step=5, seed=1) != example_places(100, 8, step=5, seed=2)
