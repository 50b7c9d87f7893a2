"""What a run will need of memory, part by part, before it starts."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from engine.config import RunConfig
from engine.planner.activations import FLOAT32, layer_bytes, norm_bytes
from engine.planner.catalogue import SMOLLM2, TINY_MATH
from engine.planner.part import BOTH, PHASES, WIDTH, Part, Phase, completions
from engine.planner.sampler import DRAW_COPIES, LARGE, SamplerRoom, sampler_parts, sampler_room
from engine.planner.shapes import ModelShape
from engine.planner.size import MIB

PROMPT_TOKENS = 256
# The arithmetic problems put to tiny-math are short in its tokenizer; a test asks for the longest.
TINY_MATH_PROMPT_TOKENS = 48
# As long is SmolLM2's prompt number_only around such a problem, its chat template included.
SMOLLM2_PROMPT_TOKENS = 64
# The largest batch of the transformers engine, and how its cache grows; a test holds them against the engine.
MOST_ROWS = 1024
SMALLEST_GROWTH = 16
# As many float32 copies of the logits lie beside one another for a moment: in the backward pass (logits, gradients of
# both terms of the log-prob, what is between them), and there with a gradient of the entropy.
LOGITS_COPIES = 5
LOGITS_COPIES_WITH_ENTROPY = 6


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """All parts, and what they come to; `sampler` is vLLM's room for keys and values, None where it does not sample.

    What the process takes besides is not in it: the libraries themselves (0.3 to 0.6 GiB), a CUDA context, and what
    an allocator cannot use between its blocks.
    """

    parts: tuple[Part, ...]
    prompt_tokens: int
    sampler: SamplerRoom | None = None

    @property
    def sampler_starts(self) -> bool:
        """Whether the sampler has room for one sequence; without it vLLM refuses to start."""
        return self.sampler is None or self.sampler.starts

    def of(self, phase: Phase) -> tuple[Part, ...]:
        """Return the parts that are there in a phase."""
        return tuple(part for part in self.parts if phase in part.phases)

    def bytes_in(self, phase: Phase) -> int:
        """Return the most bytes needed at once in a phase."""
        return sum(part.bytes for part in self.of(phase))

    @property
    def largest_phase(self) -> Phase:
        """The phase that needs more."""
        return max(PHASES, key=self.bytes_in)

    @property
    def peak(self) -> int:
        """The most bytes needed at once."""
        return max(map(self.bytes_in, PHASES))


def plan_memory(
    config: RunConfig, shape: ModelShape, *, prompt_tokens: int = PROMPT_TOKENS, device_bytes: int | None = None
) -> MemoryPlan:
    """Return the parts of a run's memory, every completion taken to be as long as it may get.

    A config does not tell how long its prompts are: `prompt_tokens` is the length of the longest. The examples of SFT
    are taken to be no longer than a completion behind it. A run without steps has no update. Where vLLM samples on a
    GPU, it takes a share of the `device_bytes` there.

    Raises:
        ValueError: if vLLM samples on a GPU and `device_bytes` is not given.
    """
    room = None
    sampled: tuple[Part, ...]
    if config.rollout.engine == "vllm":
        rows = rows_at_once(config)
        room = sampler_room(config, shape, rows=rows, prompt_tokens=prompt_tokens, device_bytes=device_bytes)
        sampled = tuple(sampler_parts(config, shape, room, large=(device_bytes or 0) >= LARGE))
    else:
        sampled = _rollout(config, shape, prompt_tokens)
    if config.total_steps == 0:
        there = [part for part in (*_weights(config, shape), *sampled) if "rollout" in part.phases]
        return MemoryPlan(tuple(replace(part, phases=("rollout",)) for part in there), prompt_tokens, room)
    parts = (
        *_weights(config, shape),
        *_training(config, shape),
        *_update(config, shape, prompt_tokens),
        *sampled,
    )
    return MemoryPlan(parts, prompt_tokens, room)


def weight_bytes(shape: ModelShape, dtype: str) -> int:
    """Return the bytes of a model's weights in a number format."""
    return shape.parameters * WIDTH[dtype]


def usual_prompt_tokens(config: RunConfig) -> int:
    """Return how long the longest prompt may be taken to be, in tokens, before any is seen."""
    if config.model.name == TINY_MATH:
        return TINY_MATH_PROMPT_TOKENS
    asked = (config.model.name, config.prompt.name, config.task.name)
    return SMOLLM2_PROMPT_TOKENS if asked == (SMOLLM2, "number_only", "arithmetic") else PROMPT_TOKENS


def cache_places(prompt_tokens: int, max_tokens: int) -> int:
    """Return the tokens per row that the rollout's cache has room for in the end.

    It is filled with the prompt and then token by token, the last one left out; each time its room is used up it
    takes a quarter more than is in it, at least 16 places.
    """
    room = _room_for(prompt_tokens)
    while room < prompt_tokens + max_tokens - 1:
        room = _room_for(room + 1)
    return room


def _weights(config: RunConfig, shape: ModelShape) -> Iterator[Part]:
    width, dtype, rank = WIDTH[config.model.dtype], config.model.dtype, config.lora.rank
    yield Part(
        "weights", weight_bytes(shape, dtype), BOTH, f"{shape.parameters:,} parameters × {width} bytes ({dtype})."
    )
    if rank is not None:
        adapters = shape.adapter_parameters(rank)
        yield Part(
            "adapters",
            adapters * FLOAT32,
            BOTH,
            f"{adapters:,} parameters beside the linear layers, rank {rank} × (inputs + outputs) each, "
            f"× {FLOAT32} bytes (float32).",
        )


def _training(config: RunConfig, shape: ModelShape) -> Iterator[Part]:
    """Yield what there is of every trained parameter besides itself. Adapters are float32 in any model."""
    rank = config.lora.rank
    trained = shape.parameters if rank is None else shape.adapter_parameters(rank)
    dtype = config.model.dtype if rank is None else "float32"
    width = WIDTH[dtype]
    yield Part("gradients", trained * width, ("update",), f"{trained:,} trained parameters × {width} bytes ({dtype}).")
    eight_bit = config.optimizer.name == "adamw_8bit"
    moment = "1 byte (8 bits)" if eight_bit else f"{width} bytes ({dtype})"
    yield Part(
        "moments",
        2 * trained * (1 if eight_bit else width),
        BOTH,
        f"Two moments of AdamW × {trained:,} trained parameters × {moment}.",
    )
    if config.has_reference:
        kept = FLOAT32 if config.kl.reference == "ema" else width
        yield Part(
            "reference",
            trained * kept,
            BOTH,
            f"A copy of {trained:,} trained parameters × {kept} bytes, kl.reference={config.kl.reference}.",
        )


def _update(config: RunConfig, shape: ModelShape, prompt_tokens: int) -> Iterator[Part]:
    width, rank, rows = WIDTH[config.model.dtype], config.lora.rank, config.largest_micro_batch
    places = rows * (prompt_tokens + config.rollout.max_tokens)
    counted = f"{completions(rows)} in a micro-batch × {prompt_tokens + config.rollout.max_tokens:,} tokens"
    of_layer, logits = layer_bytes(shape, width, rank), _logits(config, shape)
    if config.model.gradient_checkpointing:
        per_layer, what = width * shape.hidden, "the input"
        again = Part(
            "recomputed", places * of_layer, ("update",), f"{counted} × {of_layer:,} bytes of the layer computed again."
        )
        # The logits are gone before the first layer is computed again.
        last = max(logits, again, key=lambda part: part.bytes)
    else:
        per_layer, what, last = of_layer, "the activations", logits
    # Behind the layers there are one more norm and what goes into the output layer.
    per_token = shape.layers * per_layer + norm_bytes(shape, width, rank) + width * shape.hidden
    yield Part(
        "activations",
        places * per_token,
        ("update",),
        f"{counted} × {per_token:,} bytes: {what} of each of {shape.layers} layers, {per_layer:,}, and the last norm.",
    )
    yield last


def _logits(config: RunConfig, shape: ModelShape) -> Part:
    rows, longest, limit = config.largest_micro_batch, config.rollout.max_tokens, config.model.logits_memory
    bonus = config.entropy.bonus > 0 or config.entropy.target is not None
    copies = LOGITS_COPIES_WITH_ENTROPY if bonus else LOGITS_COPIES
    whole = rows * longest * shape.vocabulary * FLOAT32
    most = f", at most {limit:,} MiB" if whole > limit * MIB else ""
    return Part(
        "logits",
        copies * min(whole, limit * MIB),
        ("update",),
        f"{copies} × ({completions(rows)} × {longest:,} tokens × {shape.vocabulary:,} entries × {FLOAT32} bytes"
        f"{most}): the logits, their gradients and what lies between.",
    )


def _rollout(config: RunConfig, shape: ModelShape, prompt_tokens: int) -> tuple[Part, ...]:
    """Return the larger of two moments: prompts on their way through the layers, or the last sampled token."""
    return max(_prompts(config, shape, prompt_tokens), _sampling(config, shape, prompt_tokens), key=_total)


def _prompts(config: RunConfig, shape: ModelShape, prompt_tokens: int) -> tuple[Part, ...]:
    width = WIDTH[config.model.dtype]
    prompts = min(max(config.prompts_per_step, config.evaluation.size), rows_at_once(config))
    per_token = width * (3 * shape.intermediate + 2 * shape.hidden)
    through = Part(
        "prompts",
        prompts * prompt_tokens * per_token,
        ("rollout",),
        f"{prompts:,} prompts at once × {prompt_tokens:,} tokens × {per_token:,} bytes in the layer at work.",
    )
    return through, _cache(shape, width, rows=prompts, places=_room_for(prompt_tokens))


def _sampling(config: RunConfig, shape: ModelShape, prompt_tokens: int) -> tuple[Part, ...]:
    rows = rows_at_once(config)
    draw = Part(
        "draw",
        DRAW_COPIES * rows * shape.vocabulary * FLOAT32,
        ("rollout",),
        f"{DRAW_COPIES} × {completions(rows)} × {shape.vocabulary:,} entries × {FLOAT32} bytes to draw one token.",
    )
    places = cache_places(prompt_tokens, config.rollout.max_tokens)
    return draw, _cache(shape, WIDTH[config.model.dtype], rows=rows, places=places)


def rows_at_once(config: RunConfig) -> int:
    """Return the most completions that are sampled at once; an evaluation takes no more at a time than a step does."""
    return min(config.rollout.rollout_batch_size, MOST_ROWS)


def _cache(shape: ModelShape, width: int, *, rows: int, places: int) -> Part:
    per_place = 2 * shape.layers * shape.kv_heads * shape.head_dim * width
    return Part(
        "cache",
        per_place * rows * places,
        ("rollout",),
        f"Key and value × {shape.layers} layers × {shape.kv_heads} heads × {shape.head_dim} × {width} bytes "
        f"× {completions(rows)} at once × {places:,} tokens, room ahead included.",
    )


def _room_for(length: int) -> int:
    return length + max(SMALLEST_GROWTH, length // 4)


def _total(parts: tuple[Part, ...]) -> int:
    return sum(part.bytes for part in parts)
