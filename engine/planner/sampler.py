"""What vLLM takes beside the trainer where it samples: a share of a GPU, or a cache of its own on a CPU.

On a GPU all of it is on paper, after the source of vLLM 0.32: `gpu_memory_utilization` bounds weights, work, graphs and
cache together, and what the trainer has there already does not count. None of it has been measured.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from engine.config import RunConfig
from engine.planner.part import BOTH, WIDTH, Part, completions
from engine.planner.shapes import ModelShape
from engine.planner.size import GIB, MIB

PROMPT_ROOM = 1024
"""Tokens of a prompt that vLLM makes room for where `vllm.max_model_len` does not say."""

# The most tokens that vLLM computes at once, which it puts memory by for as it starts: its defaults, the second of them
# for GPUs with much memory, the third on a CPU.
BATCHED_TOKENS, BATCHED_TOKENS_LARGE, BATCHED_TOKENS_CPU = 8192, 16384, 4096
LARGE = 70 * GIB
# As many float32 copies of the logits lie beside one another when tokens are drawn.
DRAW_COPIES = 6
# Assumed, never measured: captured graphs, and what a sleeping vLLM keeps besides (buffers of libraries).
GRAPHS, ASLEEP = GIB, GIB // 2


@dataclass(frozen=True, slots=True)
class SamplerRoom:
    """vLLM's room for keys and values: its bytes (0 or less where the share is used up before), and what has to go in.

    `longest` are the bytes of one sequence of `max_model_len`, without room for which vLLM does not start; `whole`
    those of the longest prompt and completion of the run, of which there are `rows` in a step.
    """

    cache: int
    longest: int
    whole: int
    rows: int

    @property
    def starts(self) -> bool:
        """Whether one sequence of `max_model_len` has room."""
        return self.cache >= self.longest

    @property
    def at_once(self) -> int:
        """How many sequences fit at once, all as long as they may get."""
        return min(max(self.cache, 0) // self.whole, self.rows)

    @property
    def waves(self) -> int:
        """How often as many have to be sampled for one rollout batch, all as long as they may get; 0 for never."""
        return -(-self.rows // self.at_once) if self.at_once else 0


def samples_on_gpu(config: RunConfig) -> bool:
    """Return whether vLLM samples on a GPU; `auto` counts as one."""
    return config.rollout.engine == "vllm" and config.model.device != "cpu"


def max_model_len(config: RunConfig, positions: int) -> int:
    """Return the longest prompt and completion together that vLLM is started for, of a model with `positions`."""
    return config.vllm.max_model_len or min(positions, PROMPT_ROOM + config.rollout.max_tokens)


def sampler_dtype(config: RunConfig) -> str:
    """Return the number format that the sampler computes in."""
    by_vllm = config.rollout.engine == "vllm" and config.vllm.sampler_dtype != "model"
    return config.vllm.sampler_dtype if by_vllm else config.model.dtype


def sampler_room(
    config: RunConfig, shape: ModelShape, *, rows: int, prompt_tokens: int, device_bytes: int | None
) -> SamplerRoom:
    """Return the room that vLLM has for keys and values; a CPU's does not depend on `device_bytes`.

    Raises:
        ValueError: if vLLM samples on a GPU of an unknown size.
    """
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_dim * WIDTH[sampler_dtype(config)]
    if samples_on_gpu(config):
        if device_bytes is None:
            raise ValueError("rollout.engine=vllm takes a share of the GPU's memory; give device_bytes")
        large = device_bytes >= LARGE
        taken = (_weights(config, shape), _work(config, shape, rows, large=large), *_graphs(config))
        cache = _share(config, device_bytes) - sum(part.bytes for part in taken)
    else:
        cache = config.vllm.cpu_cache * MIB
    longest = per_token * max_model_len(config, shape.positions)
    return SamplerRoom(cache, longest, per_token * (prompt_tokens + config.rollout.max_tokens), rows)


def smallest_share(config: RunConfig, shape: ModelShape, *, rows: int, device_bytes: int) -> float:
    """Return the share of the GPU with which vLLM has room for one sequence of `max_model_len`; above 1 for none."""
    room = sampler_room(config, shape, rows=rows, prompt_tokens=1, device_bytes=device_bytes)
    return (_share(config, device_bytes) - room.cache + room.longest) / device_bytes


def sampler_parts(config: RunConfig, shape: ModelShape, room: SamplerRoom, *, large: bool) -> Iterator[Part]:
    """Yield what vLLM takes. On a GPU the parts of the rollout add up to its share, where that holds them."""
    weights, work = _weights(config, shape), _work(config, shape, room.rows, large=large)
    said = f"{completions(room.at_once)} at once, {room.rows:,} a step, each of {room.whole / MIB:,.1f} MiB."
    if not samples_on_gpu(config):
        yield Part(weights.name, weights.bytes, BOTH, weights.sentence)
        yield work
        sentence = f"vllm.cpu_cache={config.vllm.cpu_cache:,} MiB, kept in the update: room for {said}"
        yield Part("sampler_cache", room.cache, BOTH, sentence)
        return
    yield weights
    yield work
    yield from _graphs(config)
    yield Part("asleep", ASLEEP, ("update",), f"{ASLEEP // MIB} MiB assumed for what vLLM keeps asleep; not measured.")
    if room.cache > 0:
        yield Part(
            "sampler_cache",
            room.cache,
            ("rollout",),
            f"What is left of vLLM's share, {config.vllm.gpu_memory_utilization:g} of the GPU: room for {said}",
        )


def _share(config: RunConfig, device_bytes: int) -> int:
    return int(config.vllm.gpu_memory_utilization * device_bytes)


def _weights(config: RunConfig, shape: ModelShape) -> Part:
    dtype = sampler_dtype(config)
    width = WIDTH[dtype]
    sentence = f"vLLM's own copy: {shape.parameters:,} parameters × {width} bytes ({dtype})."
    return Part("sampler_weights", shape.parameters * width, ("rollout",), sentence)


def _work(config: RunConfig, shape: ModelShape, rows: int, *, large: bool) -> Part:
    """Return what vLLM puts by for the layer at work and for drawing a token; both are there as it starts."""
    tokens = BATCHED_TOKENS_CPU
    if samples_on_gpu(config):
        tokens = BATCHED_TOKENS_LARGE if large else BATCHED_TOKENS
    per_token = WIDTH[sampler_dtype(config)] * (3 * shape.intermediate + 2 * shape.hidden)
    per_row = DRAW_COPIES * shape.vocabulary * WIDTH["float32"]
    return Part(
        "sampler_work",
        tokens * per_token + rows * per_row,
        ("rollout",),
        f"vLLM at work: {tokens:,} tokens × {per_token:,} bytes in a layer, and {DRAW_COPIES} × {completions(rows)} × "
        f"{shape.vocabulary:,} entries × 4 bytes to draw a token.",
    )


def _graphs(config: RunConfig) -> Iterator[Part]:
    if not config.vllm.enforce_eager:
        sentence = f"{GRAPHS // MIB:,} MiB assumed for captured graphs, kept asleep as well; not measured."
        yield Part("graphs", GRAPHS, BOTH, sentence)
