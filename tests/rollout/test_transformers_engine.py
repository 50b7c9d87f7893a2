import math
from itertools import chain

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma3TextConfig, GPT2Config, MistralConfig

from engine.grpo.log_probs import next_tokens, token_log_probs
from engine.rollout.protocol import SamplingParams
from engine.rollout.transformers_engine import TransformersEngine

END, OTHER_END = "<|end|>", "<|other_end|>"
PROMPTS = [list(range(5, 8)), list(range(10, 40)), [100], list(range(60, 77))]


def forced(model, prompt, completion, temperature):
    """Log-probs of a completion in one forward pass of its own, without padding or cache."""
    token_ids = torch.tensor([[*prompt, *completion.token_ids]])
    with torch.no_grad():
        scored = next_tokens(model(token_ids).logits, token_ids)
    return token_log_probs(*scored, temperature)[0, len(prompt) - 1 :].numpy()


def tokens_of(groups):
    return [[completion.token_ids for completion in group] for group in groups]


def assert_same(ours, theirs):
    """Same tokens, texts and reasons; log-probs to the last bit."""
    for one, other in zip(chain(*ours), chain(*theirs), strict=True):
        assert one.token_ids == other.token_ids
        assert (one.text, one.finish_reason, one.stop) == (other.text, other.finish_reason, other.stop)
        assert np.array_equal(one.sampler_log_probs, other.sampler_log_probs)


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(max_tokens=24),
        SamplingParams(max_tokens=24, temperature=0.6),
        SamplingParams(max_tokens=24, min_tokens=20),
        SamplingParams(max_tokens=24, temperature=1.5, greedy=True),
    ],
)
def test_sampler_log_probs_are_those_of_one_row_at_a_time_without_padding(model, tokenizer, sampling):
    # Half of the tokens end a completion, so that rows leave all the time.
    engine = TransformersEngine(model, tokenizer, end_token_ids=range(0, len(tokenizer), 16))
    groups = engine.generate(PROMPTS, n=4, sampling=sampling, seed=0)
    differences = [
        np.abs(completion.sampler_log_probs - forced(model, prompt, completion, sampling.temperature))
        for prompt, group in zip(PROMPTS, groups, strict=True)
        for completion in group
    ]
    assert len({len(difference) for difference in differences}) > 1 or sampling.greedy
    assert np.concatenate(differences).mean() <= 1e-5
    assert np.concatenate(differences).max() <= 1e-4


@pytest.mark.parametrize(
    "config",
    [
        GPT2Config(n_embd=32, n_layer=2, n_head=4, n_positions=128),
        MistralConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            sliding_window=8,
        ),
        Gemma3TextConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=1,
            head_dim=8,
            sliding_window=8,
            query_pre_attn_scalar=8,
            layer_types=["sliding_attention", "full_attention"],
        ),
    ],
    ids=lambda config: config.model_type,
)
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_other_architectures_are_sampled_as_exactly(config, attention, tokenizer):
    torch.manual_seed(0)
    config.vocab_size = len(tokenizer)
    config.initializer_range = 0.3
    other = AutoModelForCausalLM.from_config(config, attn_implementation=attention).eval()
    engine = TransformersEngine(other, tokenizer, end_token_ids=range(0, len(tokenizer), 16))
    for prompt, group in zip(
        PROMPTS, engine.generate(PROMPTS, n=2, sampling=SamplingParams(max_tokens=24), seed=0), strict=True
    ):
        for completion in group:
            expected = forced(other, prompt, completion, 1.0)
            assert completion.sampler_log_probs == pytest.approx(expected, abs=1e-4)


def test_one_seed_gives_the_same_bits_and_another_does_not(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    sampling = SamplingParams(max_tokens=16)
    first, again, other = (engine.generate(PROMPTS, n=3, sampling=sampling, seed=seed) for seed in (7, 7, 8))
    assert_same(first, again)
    assert tokens_of(first) != tokens_of(other)


def test_the_global_random_state_neither_matters_nor_changes(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    sampling = SamplingParams(max_tokens=8)
    torch.manual_seed(1)
    first = engine.generate(PROMPTS, n=2, sampling=sampling, seed=0)
    state = torch.get_rng_state()
    torch.manual_seed(2)
    assert_same(first, engine.generate(PROMPTS, n=2, sampling=sampling, seed=0))
    torch.manual_seed(1)
    engine.generate(PROMPTS, n=2, sampling=sampling, seed=3)
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("options", [{"shrink_at": None}, {"shrink_at": 0.5}, {"max_rows": 5}])
def test_completions_do_not_depend_on_when_rows_leave_or_how_many_are_sampled_at_once(model, tokenizer, options):
    ends, sampling = range(0, len(tokenizer), 16), SamplingParams(max_tokens=24)
    engines = (TransformersEngine(model, tokenizer, end_token_ids=ends, **other) for other in ({}, options))
    ours, theirs = (engine.generate(PROMPTS, n=4, sampling=sampling, seed=0) for engine in engines)
    assert tokens_of(ours) == tokens_of(theirs)
    for one, other in zip(chain(*ours), chain(*theirs), strict=True):
        np.testing.assert_allclose(one.sampler_log_probs, other.sampler_log_probs, atol=1e-4)


def test_a_group_gets_what_its_prompt_asked_n_times_would_get(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    sampling = SamplingParams(max_tokens=16)
    grouped = engine.generate(PROMPTS, n=3, sampling=sampling, seed=0)
    apart = engine.generate([prompt for prompt in PROMPTS for _ in range(3)], n=1, sampling=sampling, seed=0)
    assert list(chain(*tokens_of(grouped))) == list(chain(*tokens_of(apart)))
    assert [len(group) for group in grouped] == [3] * 4


def test_greedy_is_what_transformers_generates(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    groups = engine.generate(PROMPTS, n=1, sampling=SamplingParams(max_tokens=20, greedy=True), seed=0)
    for prompt, (completion,) in zip(PROMPTS, groups, strict=True):
        theirs = model.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt)), max_new_tokens=20, do_sample=False
        )
        assert completion.token_ids == tuple(theirs[0, len(prompt) :].tolist())


def warped_log_probs(model, prompt, completion, sampling, banned):
    """Log-probs of a completion under the warped distribution, row by row and in plain arithmetic."""
    token_ids = torch.tensor([[*prompt, *completion.token_ids]])
    with torch.no_grad():
        logits = model(token_ids).logits[0, len(prompt) - 1 : -1].double()
    log_probs = []
    for step, (scores, token) in enumerate(zip(logits, completion.token_ids, strict=True)):
        seen = sorted({*prompt, *completion.token_ids[:step]})
        penalty = torch.where(scores[seen] > 0, 1 / sampling.repetition_penalty, sampling.repetition_penalty)
        scores[seen] = scores[seen] * penalty
        if step < sampling.min_tokens:
            scores[list(banned)] = -torch.inf
        probabilities = torch.softmax(scores / sampling.temperature, -1)
        if not sampling.greedy:
            ranked = probabilities.sort(descending=True)
            if sampling.top_k is not None:
                probabilities[ranked.indices[sampling.top_k :]] = 0
                probabilities = probabilities / probabilities.sum()
            ranked = probabilities.sort(descending=True)
            before = ranked.values.cumsum(0) - ranked.values
            probabilities[ranked.indices[before >= sampling.top_p]] = 0
            probabilities[probabilities < sampling.min_p * probabilities.max()] = 0
            probabilities = probabilities / probabilities.sum()
        log_probs.append(math.log(probabilities[token]))
    return np.array(log_probs)


@pytest.mark.parametrize(
    "params",
    [
        {"top_p": 0.7},
        {"top_k": 5, "temperature": 1.5},
        {"min_p": 0.2},
        {"repetition_penalty": 1.7},
        {"repetition_penalty": 0.6, "top_p": 0.9, "top_k": 20, "min_p": 0.05, "temperature": 0.8},
        {"repetition_penalty": 1.5, "greedy": True, "top_k": 3},
        {"top_k": 8, "min_tokens": 20},
    ],
    ids=str,
)
def test_log_probs_of_a_warped_sampler_are_those_of_what_was_drawn_from(model, tokenizer, params):
    # Prompts of four lengths in one batch, with token 0 in none of them, and rows that leave all the time.
    ends = range(0, len(tokenizer), 16)
    sampling = SamplingParams(max_tokens=24, **params)
    groups = TransformersEngine(model, tokenizer, end_token_ids=ends).generate(PROMPTS, n=4, sampling=sampling, seed=0)
    for prompt, group in zip(PROMPTS, groups, strict=True):
        for completion in group:
            expected = warped_log_probs(model, prompt, completion, sampling, ends)
            assert completion.sampler_log_probs == pytest.approx(expected, abs=2e-4)


def test_what_keeps_every_token_draws_the_same_bits_as_no_warp(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    plain, whole = (SamplingParams(max_tokens=16, temperature=0.7, top_k=top_k) for top_k in (None, 10_000))
    assert (plain.warped, whole.warped) == (False, True)
    ours, theirs = (engine.generate(PROMPTS, n=3, sampling=sampling, seed=0) for sampling in (plain, whole))
    assert_same(ours, theirs)


def test_greedy_draws_the_same_bits_whatever_would_cut_it(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    plain = SamplingParams(max_tokens=16, greedy=True)
    cut = SamplingParams(max_tokens=16, greedy=True, top_p=0.1, top_k=2, min_p=0.5)
    ours, theirs = (engine.generate(PROMPTS, n=1, sampling=sampling, seed=0) for sampling in (plain, cut))
    assert_same(ours, theirs)


def test_a_penalised_greedy_choice_is_what_transformers_generates(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    sampling = SamplingParams(max_tokens=20, greedy=True, repetition_penalty=1.8)
    groups = engine.generate(PROMPTS, n=1, sampling=sampling, seed=0)
    for prompt, (completion,) in zip(PROMPTS, groups, strict=True):
        theirs = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt)),
            max_new_tokens=20,
            do_sample=False,
            repetition_penalty=1.8,
        )
        assert completion.token_ids == tuple(theirs[0, len(prompt) :].tolist())
    unpenalised = engine.generate(PROMPTS, n=1, sampling=SamplingParams(max_tokens=20, greedy=True), seed=0)
    assert tokens_of(groups) != tokens_of(unpenalised)


@pytest.mark.parametrize("options", [{"shrink_at": None}, {"shrink_at": 0.5}, {"max_rows": 5}])
def test_warped_completions_do_not_depend_on_when_rows_leave_or_how_many_are_sampled_at_once(model, tokenizer, options):
    ends = range(0, len(tokenizer), 16)
    sampling = SamplingParams(max_tokens=24, repetition_penalty=1.5, top_p=0.8)
    engines = (TransformersEngine(model, tokenizer, end_token_ids=ends, **other) for other in ({}, options))
    ours, theirs = (engine.generate(PROMPTS, n=4, sampling=sampling, seed=0) for engine in engines)
    assert tokens_of(ours) == tokens_of(theirs)


def test_a_tempered_softmax_is_sampled_in_its_proportions(model, tokenizer):
    count = 4000
    sampling = SamplingParams(max_tokens=1, temperature=2.0)
    (group,) = TransformersEngine(model, tokenizer).generate([[9, 8]], n=count, sampling=sampling, seed=0)
    drawn = torch.bincount(torch.tensor([completion.token_ids[0] for completion in group]), minlength=len(tokenizer))
    with torch.no_grad():
        expected = torch.softmax(model(torch.tensor([[9, 8]])).logits[0, -1] / 2.0, -1)
    # Four standard errors of a share.
    assert ((drawn / count - expected).abs() <= 4 * (expected * (1 - expected) / count).sqrt() + 1e-9).all()


class TestFinishReasons:
    """Greedy runs of a model that follows a script of tokens; the prompt is the script's first."""

    @pytest.fixture
    def run(self, scripted, tokenizer):
        def run(text, *, max_tokens=16, min_tokens=0, stop_strings=("</answer>",)):
            script = tokenizer.encode("#") + (tokenizer.encode(text) if isinstance(text, str) else text)
            engine = TransformersEngine(scripted(script), tokenizer)
            sampling = SamplingParams(
                max_tokens=max_tokens, min_tokens=min_tokens, stop_strings=stop_strings, greedy=True
            )
            ((completion,),) = engine.generate([script[:1]], n=1, sampling=sampling, seed=0)
            assert len(completion.sampler_log_probs) == len(completion.token_ids)
            return completion, tuple(script[1:])

        return run

    @pytest.mark.parametrize("end", [END, OTHER_END])
    def test_either_end_token_ends_and_counts_and_is_not_shown(self, run, end):
        completion, script = run("ab" + end + "c")
        assert (completion.finish_reason, completion.stop, completion.text) == ("eos", None, "ab")
        assert completion.token_ids == script[:3]

    def test_the_length_limit_cuts(self, run):
        completion, script = run("abcdef", max_tokens=4)
        assert (completion.finish_reason, completion.stop, completion.text) == ("length", None, "abcd")
        assert completion.token_ids == script[:4]

    def test_an_end_at_the_very_limit_is_an_end(self, run):
        assert run("abc" + END, max_tokens=4)[0].finish_reason == "eos"
        assert run("abc</answer>", max_tokens=4)[0].finish_reason == "stop"

    def test_a_stop_string_that_is_one_token(self, run):
        completion, script = run("ab</answer>cd")
        assert (completion.finish_reason, completion.stop, completion.text) == ("stop", "</answer>", "ab</answer>")
        assert completion.token_ids == script[:3]

    def test_a_stop_string_spelled_over_many_tokens(self, run, tokenizer):
        spelled = [tokenizer.encode(character)[0] for character in "b</answer>c"]
        completion, script = run(spelled)
        assert (completion.finish_reason, completion.text) == ("stop", "b</answer>")
        assert completion.token_ids == script[:10]

    def test_a_stop_string_that_ends_inside_a_token_cuts_the_text_and_not_the_tokens(self, run, tokenizer):
        spelled = [tokenizer.encode(character)[0] for character in "b</ans"]
        completion, script = run([*spelled, *tokenizer.encode("wer>XY"), *tokenizer.encode("c")])
        assert (completion.finish_reason, completion.text) == ("stop", "b</answer>")
        assert completion.token_ids == script[:7]
        assert tokenizer.decode(completion.token_ids) == "b</answer>XY"

    def test_a_stop_string_inside_a_token(self, run):
        completion, script = run("b" + "P</answer>Q</answer>" + "c")
        assert completion.text == "bP</answer>"
        assert completion.token_ids == script[:2]

    def test_tags_that_are_special_tokens_stay_in_the_text(self, run):
        assert run("<think>a .b" + END)[0].text == "<think>a .b"

    def test_min_tokens_come_before_an_end_token(self, run, tokenizer):
        completion, script = run("a" + END + "b", min_tokens=2, max_tokens=3)
        assert completion.token_ids[0] == script[0]
        assert completion.token_ids[1] not in (tokenizer.convert_tokens_to_ids(END), *script[:1])
        # The log-prob is of the whole softmax: what was drawn against the script had next to no probability.
        assert completion.sampler_log_probs[1] == pytest.approx(-50, abs=0.1)

    def test_a_stop_string_within_min_tokens_does_not_stop(self, run):
        completion, script = run("a</answer>bP</answer>Q</answer>", min_tokens=3)
        assert completion.token_ids == script[:4]
        assert completion.text == "a</answer>bP</answer>"

    def test_without_stop_strings_nothing_stops(self, run):
        assert run("a</answer>b" + END, stop_strings=())[0].finish_reason == "eos"

    def test_rows_of_one_batch_end_each_in_its_way(self, scripted, tokenizer):
        texts = ["1ab" + END, "2cd</answer>e", "3fghijklm", "4n" + OTHER_END]
        scripts = [tokenizer.encode(text) for text in texts]
        engine = TransformersEngine(scripted(*scripts), tokenizer)
        sampling = SamplingParams(max_tokens=6, stop_strings=("</answer>",), greedy=True)
        groups = engine.generate([script[:1] for script in scripts], n=2, sampling=sampling, seed=0)
        for group in groups:
            assert group[0].token_ids == group[1].token_ids
        firsts = [group[0] for group in groups]
        assert [first.finish_reason for first in firsts] == ["eos", "stop", "length", "eos"]
        assert [first.text for first in firsts] == ["ab", "cd</answer>", "fghijk", "n"]
        assert [len(first.token_ids) for first in firsts] == [3, 3, 6, 2]


def test_the_model_is_left_as_it_was(model, tokenizer):
    model.train()
    TransformersEngine(model, tokenizer).generate([[5]], n=1, sampling=SamplingParams(max_tokens=2), seed=0)
    assert model.training
    assert model.config._attn_implementation == "sdpa"
    model.eval()


def test_end_ids_come_from_the_generation_config_and_the_tokenizer(model, tokenizer):
    assert TransformersEngine(model, tokenizer).end_token_ids == (0, 1)


def test_without_end_tokens_only_length_and_stop_strings_end(model, tokenizer):
    engine = TransformersEngine(model, tokenizer, end_token_ids=())
    (group,) = engine.generate([[5]], n=8, sampling=SamplingParams(max_tokens=6, min_tokens=3), seed=0)
    assert {completion.finish_reason for completion in group} == {"length"}


def test_what_cannot_be_sampled_is_refused_in_words(model, tokenizer):
    engine = TransformersEngine(model, tokenizer)
    sampling = SamplingParams(max_tokens=100)
    for prompts, n, message in [
        ([[]], 1, "prompt 0 has no tokens"),
        ([[5] * 29], 1, "max_tokens of at most 99"),
        ([[5]], 0, "at least 1"),
    ]:
        with pytest.raises(ValueError, match=message):
            engine.generate(prompts, n=n, sampling=sampling, seed=0)
    with pytest.raises(ValueError, match="max_rows=0"):
        TransformersEngine(model, tokenizer, max_rows=0)
    assert engine.generate([], n=2, sampling=sampling, seed=0) == []
