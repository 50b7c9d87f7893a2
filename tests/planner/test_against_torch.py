"""The plan against what torch allocates, on small random models of the same kind."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

from engine.config import RunConfig, parse_config
from engine.planner import MemoryPlan, cache_places, plan_memory, shape_of_config, usual_prompt_tokens
from engine.policy.adapter import add_lora
from engine.policy.gradient_checkpointing import checkpointing_layers, enable_gradient_checkpointing
from engine.policy.policy import TINY_MATH, Policy, load_policy, load_tokenizer
from engine.rollout.cache import growing_cache
from engine.rollout.protocol import SamplingParams
from engine.rollout.transformers_engine import TransformersEngine
from engine.tasks.prompts import load_prompt
from engine.tasks.task import load_task
from engine.training.batch import Batch
from engine.training.forward import score_tokens
from engine.training.optimizer import make_optimizer
from tests.planner.allocations import peak_of

KINDS: dict[str, Any] = {
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
}
SIZES = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
}
PROMPT = 20


@dataclass(frozen=True)
class Case:
    """A model and the plan of a run that trains it."""

    model: Any
    config: RunConfig
    plan: MemoryPlan

    @property
    def trained(self) -> list[Tensor]:
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    def bytes_of(self, name: str) -> int:
        return next((part.bytes for part in self.plan.parts if part.name == name), 0)


def case(kind: str = "qwen2", vocabulary: int = 500, prompt_tokens: int = PROMPT, **fields: Any) -> Case:
    config = parse_config(
        {
            "rollout.rollout_batch_size": 4,
            "rollout.group_size": 4,
            "rollout.max_tokens": 40,
            "evaluation.size": 1,
            **{path.replace("__", "."): value for path, value in fields.items()},
        }
    )
    made, model_class = KINDS[kind]
    described = made(vocab_size=vocabulary, **SIZES)
    model = model_class(described).to(getattr(torch, config.model.dtype)).eval()
    if config.lora.rank is not None:
        pytest.importorskip("peft")
        model = add_lora(Policy(model, None), config.lora.rank, config.lora.alpha).model
    if config.model.gradient_checkpointing:
        enable_gradient_checkpointing(model)
    shape = shape_of_config(described.to_dict())
    assert shape is not None
    return Case(model, config, plan_memory(config, shape, prompt_tokens=prompt_tokens))


def batch_of(case: Case, rows: int = 4) -> Batch:
    longest = case.config.rollout.max_tokens
    ids = torch.randint(0, case.model.config.vocab_size, (rows, PROMPT + longest))
    mask = torch.ones(rows, longest, dtype=torch.bool)
    return Batch(
        input_ids=ids,
        response_ids=ids[:, PROMPT:],
        response_mask=mask,
        loss_mask=mask,
        sampler_log_probs=torch.zeros(rows, longest),
        prompt_lengths=torch.full((rows,), PROMPT),
        response_lengths=torch.full((rows,), longest),
        advantages=torch.ones(rows),
    )


def nbytes(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def kept_for_backward(case: Case, ids: Tensor) -> int:
    """Return the bytes of what the decoder and the layer behind it keep for the backward pass, parameters left out."""
    own = {parameter.untyped_storage().data_ptr() for parameter in case.model.parameters()}
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor), checkpointing_layers(case.model):
        # The output layer keeps what goes into it.
        pack(case.model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state)
    return sum(tensor.untyped_storage().nbytes() for place, tensor in kept.items() if place not in own)


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_weights_gradients_and_moments_are_counted_to_the_byte(kind: str, dtype: str, rank: int | None) -> None:
    made = case(kind, model__dtype=dtype, lora__rank=rank)
    optimizer = make_optimizer(made.model, made.config.optimizer)
    made.model(input_ids=torch.ones(1, 4, dtype=torch.int64)).logits.sum().backward()
    optimizer.step()
    moments = [state[name] for state in optimizer.state.values() for name in ("exp_avg", "exp_avg_sq")]
    assert made.bytes_of("weights") + made.bytes_of("adapters") == nbytes(made.model.parameters())
    assert made.bytes_of("adapters") == (nbytes(made.trained) if rank else 0)
    assert made.bytes_of("gradients") == nbytes(parameter.grad for parameter in made.trained)
    assert made.bytes_of("moments") == nbytes(moments)


@pytest.mark.parametrize("max_tokens", [1, 17, 40, 300])
def test_the_cache_is_counted_to_the_byte(max_tokens: int) -> None:
    made = case(rollout__max_tokens=max_tokens)
    cache = growing_cache(made.model.config)
    with torch.no_grad():
        made.model(input_ids=torch.ones(4, PROMPT, dtype=torch.int64), past_key_values=cache, use_cache=True)
        for _ in range(max_tokens - 1):
            made.model(input_ids=torch.ones(4, 1, dtype=torch.int64), past_key_values=cache, use_cache=True)
    rooms = [room for layer in cache.layers for room in (layer.keys, layer.values)]
    assert made.bytes_of("cache") == sum(room.untyped_storage().nbytes() for room in rooms)
    assert rooms[0].untyped_storage().nbytes() == 4 * 4 * 2 * 16 * cache_places(PROMPT, max_tokens)


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_layers_keep_for_the_backward_pass_is_counted_within_a_twentieth(
    kind: str, dtype: str, rank: int | None
) -> None:
    made = case(kind, model__dtype=dtype, lora__rank=rank)
    counted = kept_for_backward(made, batch_of(made).input_ids)
    assert made.bytes_of("activations") == pytest.approx(counted, rel=0.05)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_with_checkpointing_layers_keep_their_inputs_alone(dtype: str) -> None:
    made, without = case(model__dtype=dtype, model__gradient_checkpointing=True), case(model__dtype=dtype)
    counted = kept_for_backward(made, batch_of(made).input_ids)
    assert made.bytes_of("activations") == pytest.approx(counted, rel=0.05)
    assert counted < without.bytes_of("activations") / 4


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"model__dtype": "bfloat16"},
        {"vocabulary": 20_000},
        {"vocabulary": 20_000, "model__logits_memory": 4},
        {"vocabulary": 20_000, "entropy__bonus": 0.01},
        {"model__gradient_checkpointing": True},
        {"model__gradient_checkpointing": True, "vocabulary": 20_000, "model__dtype": "bfloat16"},
        {"lora__rank": 4},
        {"lora__rank": 4, "model__dtype": "bfloat16", "model__gradient_checkpointing": True},
    ],
)
def test_the_peak_of_an_update_lies_within_a_fifth_of_the_plan(fields: dict[str, Any], tmp_path: Path) -> None:
    made = case(**fields)
    optimizer = make_optimizer(made.model, made.config.optimizer)
    batch, bonus = batch_of(made), made.config.entropy.bonus

    def update() -> None:
        limit = made.config.model.logits_memory
        with checkpointing_layers(made.model):
            scores = score_tokens(made.model, batch, temperature=1.0, logits_memory=limit, entropy_graph=bonus > 0)
            loss = -scores.log_probs.mean() - bonus * scores.entropy.mean()
            del scores
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    update()  # the first one makes the moments
    measured = nbytes(made.model.parameters()) + made.bytes_of("moments") + peak_of(update, tmp_path / "trace.json")
    assert made.plan.bytes_in("update") == pytest.approx(measured, rel=0.2)


@pytest.mark.parametrize(
    ("rows", "group_size", "prompt_tokens", "max_tokens"), [(128, 8, 57, 48), (128, 2, 100, 8), (16, 16, 20, 100)]
)
def test_the_peak_of_a_rollout_lies_within_a_fifth_of_the_plan(
    rows: int, group_size: int, prompt_tokens: int, max_tokens: int, tmp_path: Path
) -> None:
    policy = load_policy("tiny-math", device="cpu")
    engine = TransformersEngine(policy.model, policy.tokenizer, end_token_ids=[0])
    sampling = SamplingParams(max_tokens=max_tokens, min_tokens=max_tokens)
    prompts = [[5] * prompt_tokens] * (rows // group_size)
    config = parse_config(
        {
            "rollout.rollout_batch_size": rows,
            "rollout.group_size": group_size,
            "rollout.max_tokens": max_tokens,
            "evaluation.size": 1,
        }
    )
    shape = shape_of_config(policy.model.config.to_dict())
    assert shape is not None
    plan = plan_memory(config, shape, prompt_tokens=prompt_tokens)
    resident = sum(part.bytes for part in plan.of("rollout") if "update" in part.phases)
    peak = peak_of(lambda: engine.generate(prompts, n=group_size, sampling=sampling, seed=0), tmp_path / "trace.json")
    assert plan.bytes_in("rollout") - resident == pytest.approx(peak, rel=0.2)


@pytest.mark.parametrize("prompt", ["r1_zero", "question_only"])
def test_the_prompts_put_to_tiny_math_are_no_longer_than_they_are_taken_to_be(prompt: str) -> None:
    longest = {"task.operands_min": 8, "task.operands_max": 8, "task.largest_operand": 999, "prompt.name": prompt}
    config = parse_config(longest)
    template, tokenizer = load_prompt(prompt), load_tokenizer(str(TINY_MATH))
    problems = load_task(config.task).train_batch(1, 50, seed=0)
    lengths = [len(tokenizer(template.render(problem.question)).input_ids) for problem in problems]
    assert max(lengths) <= usual_prompt_tokens(config)
