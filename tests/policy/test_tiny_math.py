import json
import random
import re
import unicodedata
from collections import Counter

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from safetensors import safe_open
from transformers import AutoTokenizer, Qwen2ForCausalLM

from engine.errors import CheckpointError
from engine.policy.tiny_math import WEIGHTS, corpus, pretrain
from engine.policy.tiny_math.corpus import sample
from engine.policy.tiny_math.measure import measure
from engine.policy.tiny_math.pretrain import IGNORED, Batch, batches, build_model, encode, next_token_loss
from engine.policy.tiny_math.tokenizer import END, PAD, PHRASES, build_tokenizer, load_tokenizer
from engine.rewards.verifiers import REWARDS
from engine.tasks import arithmetic
from engine.tasks.prompts import load_prompt

R1_ZERO, QUESTION_ONLY = load_prompt("r1_zero"), load_prompt("question_only")


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(WEIGHTS)


@pytest.fixture(scope="module")
def auto_tokenizer():
    return AutoTokenizer.from_pretrained(WEIGHTS)


@pytest.fixture(scope="module")
def model():
    return Qwen2ForCausalLM.from_pretrained(WEIGHTS).eval()


class TestTokenizer:
    @given(st.text() | st.lists(st.sampled_from([*PHRASES, " ", "\n", "é", "7", END, PAD])).map("".join))
    @example("  two  spaces , and . stops\t\r\n")
    @example(" <think>  </think>\n<answer>")
    @example("e\u0301 is two characters")
    @example("Ġ Ċ 語 🙂 \x00")
    def test_any_text_comes_back_exactly(self, tokenizer, text):
        assert tokenizer.decode(tokenizer.encode(text)) == text

    @given(st.text() | st.lists(st.sampled_from([*PHRASES, " ", "7", END, PAD, "<|endoftext|>"])).map("".join))
    def test_auto_tokenizer_gives_the_same_ids_for_composed_text(self, tokenizer, auto_tokenizer, text):
        composed = unicodedata.normalize("NFC", text)
        assert auto_tokenizer.encode(composed) == tokenizer.encode(composed)
        assert len(auto_tokenizer) == len(tokenizer)

    def test_each_byte_is_a_token(self, tokenizer):
        assert len(tokenizer.encode("7é")) == 3

    @pytest.mark.parametrize("phrase", [*PHRASES, END, PAD])
    def test_each_phrase_is_one_token(self, tokenizer, phrase):
        assert len(tokenizer.encode(phrase)) == 1

    def test_the_tags_are_shown_when_special_tokens_are_left_out(self, tokenizer):
        ids = tokenizer.encode(f"<think> 1 </think> <answer> \\boxed{{1}} </answer>{END}{PAD}")
        assert tokenizer.decode(ids, skip_special_tokens=True) == "<think> 1 </think> <answer> \\boxed{1} </answer>"

    def test_a_published_prompt_costs_few_tokens(self, tokenizer):
        assert len(tokenizer.encode(R1_ZERO.render("What is 20 + 17 - 19 + 16?"))) == 20
        assert len(tokenizer.encode(QUESTION_ONLY.render("What is 7 + 12?"))) == 6

    def test_the_files_in_the_package_are_what_the_code_builds(self, tokenizer):
        assert json.loads(tokenizer.backend_tokenizer.to_str()) == json.loads(
            build_tokenizer().backend_tokenizer.to_str()
        )
        assert (tokenizer.eos_token, tokenizer.pad_token) == (END, PAD)
        assert tokenizer.padding_side == "left"


class TestCorpus:
    def test_the_shares_of_the_habits_add_up_to_one(self):
        for habits in corpus.HABITS.values():
            assert sum(share for share, _ in habits.values()) == pytest.approx(1.0)

    def test_no_held_out_problem_is_shown(self):
        rng = random.Random(0)
        for _ in range(2000):
            question = re.search(r"What is (\S+(?: [+-] \d+)+)\?", sample(rng).text)
            if question:
                words = question.group(1).split()
                assert arithmetic.split_of([int(word) for word in words[::2]], words[1::2]) == "train"

    @pytest.mark.parametrize("template", [R1_ZERO, QUESTION_ONLY], ids=lambda template: template.name)
    def test_right_wrong_and_unreadable_answers_all_occur(self, template):
        verdicts = Counter()
        rng = random.Random(1)
        for _, writer in corpus.HABITS[template.name].values():
            for _ in range(200):
                completion = writer(rng, (7, 12, 3), ("+", "-"))
                verdicts[REWARDS[template.reward](completion, "16").verdict] += 1
        assert min(verdicts[verdict] for verdict in ("correct", "wrong", "unreadable")) > 40

    def test_the_careful_habit_is_right_and_in_form(self):
        completion = corpus._right(random.Random(0), (7, 12, 3), ("+", "-"))
        assert REWARDS["answer_tag"](completion, "16").value == 1.0

    def test_the_loss_is_taken_on_completions_and_on_the_results_of_drills(self, tokenizer):
        rng = random.Random(2)
        for _ in range(200):
            text = sample(rng)
            ids, labels = encode(tokenizer, text)
            assert tokenizer.decode(ids) == text.text
            learned = [label for label in labels if label != IGNORED]
            assert tokenizer.decode(learned) == "".join(piece for piece, is_learned in text.pieces if is_learned)
            assert learned[-1] == tokenizer.eos_token_id


class TestPretraining:
    def test_the_stream_of_batches_is_the_same_wherever_it_is_entered(self):
        stream = batches(build_tokenizer(), seed=3, start=0, size=4)
        from_start = [next(stream) for _ in range(12)]
        entered = batches(build_tokenizer(), seed=3, start=10, size=4)
        for expected in from_start[10:]:
            batch = next(entered)
            assert torch.equal(batch.input_ids, expected.input_ids)
            assert torch.equal(batch.labels, expected.labels)

    def test_padding_does_not_change_the_loss(self):
        torch.manual_seed(0)
        model = build_model(vocabulary=12, end_id=0, pad_id=1).eval()
        ids = torch.tensor([[5, 6, 7, 8]])
        labels = torch.tensor([[IGNORED, IGNORED, 7, 8]])
        padded = Batch(
            torch.cat([ids, torch.ones(1, 3, dtype=torch.long)], dim=1),
            torch.cat([labels, torch.full((1, 3), IGNORED)], dim=1),
        )
        log_probs = model(input_ids=ids).logits.log_softmax(-1)
        expected = -(log_probs[0, 1, 7] + log_probs[0, 2, 8]) / pretrain.TOKENS_PER_TEXT
        assert next_token_loss(model, Batch(ids, labels)).item() == pytest.approx(expected.item(), abs=1e-6)
        assert next_token_loss(model, padded).item() == pytest.approx(expected.item(), abs=1e-6)

    def test_every_learned_token_counts_the_same_in_short_and_in_long_batches(self):
        torch.manual_seed(0)
        model = build_model(vocabulary=12, end_id=0, pad_id=1).eval()
        short = Batch(torch.tensor([[5, 6]]), torch.tensor([[IGNORED, 6]]))
        long = Batch(torch.tensor([[5, 6, 7, 8]]), torch.tensor([[IGNORED, 6, 7, 8]]))
        only_rest = Batch(torch.tensor([[5, 6, 7, 8]]), torch.tensor([[IGNORED, IGNORED, 7, 8]]))
        parts = next_token_loss(model, short) + next_token_loss(model, only_rest)
        assert next_token_loss(model, long).item() == pytest.approx(parts.item(), abs=1e-6)

    def test_a_resumed_pre_training_ends_in_the_same_weights(self, tmp_path):
        settings = {"batch_size": 4, "peak_learning_rate": 1e-3, "seed": 0, "save_every": 2}
        pretrain.pretrain(tmp_path / "whole", steps=4, resume=False, **settings)
        pretrain.pretrain(tmp_path / "parts", steps=2, resume=False, **settings)
        pretrain.pretrain(tmp_path / "parts", steps=4, resume=True, **settings)
        whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
        assert whole == parts

    def test_resuming_without_a_checkpoint_is_refused(self, tmp_path):
        with pytest.raises(CheckpointError, match=r"^--resume: .* leave --resume out"):
            pretrain.pretrain(
                tmp_path, steps=1, batch_size=1, peak_learning_rate=1e-3, seed=0, save_every=1, resume=True
            )


class TestWeights:
    def test_the_model_is_small(self, model):
        assert 0.7e6 < sum(parameter.numel() for parameter in model.parameters()) < 1.1e6
        assert sum(file.stat().st_size for file in WEIGHTS.iterdir() if file.suffix != ".pt") < 6_000_000

    def test_the_weights_are_finite_float32(self):
        with safe_open(WEIGHTS / "model.safetensors", framework="pt") as weights:
            for name in weights.keys():  # noqa: SIM118
                tensor = weights.get_tensor(name)
                assert tensor.dtype == torch.float32
                assert torch.isfinite(tensor).all()

    def test_config_and_tokenizer_agree_on_the_end_and_the_padding(self, model, tokenizer):
        assert model.config.vocab_size == len(tokenizer)
        assert model.generation_config.eos_token_id == model.config.eos_token_id == tokenizer.eos_token_id
        assert model.generation_config.pad_token_id == model.config.pad_token_id == tokenizer.pad_token_id

    def test_the_policy_starts_low_under_r1_zero_with_the_skill_in_reach(self, model, tokenizer):
        torch.manual_seed(0)
        problems = arithmetic.problems("test", 32, seed=11)
        values = measure(model, tokenizer, R1_ZERO, problems, max_new_tokens=64)
        assert 0.10 <= values.accuracy <= 0.27
        assert values.pass_at_8 >= 0.55
        assert values.mixed_groups >= 0.55
        assert values.mean_length < 40
        assert values.cut_off < 0.02

    def test_question_only_starts_elsewhere(self, model, tokenizer):
        torch.manual_seed(0)
        problems = arithmetic.problems("test", 32, seed=11)
        assert measure(model, tokenizer, QUESTION_ONLY, problems, max_new_tokens=64).accuracy > 0.3
