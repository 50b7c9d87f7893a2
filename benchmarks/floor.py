"""How far a step is from the arithmetic it cannot do without: `python -m benchmarks.floor`.

The machine's matrix rate (float32, one thread) is measured at the sizes that the model's layers have, and its bandwidth
by copying. The multiplications and additions of a step are counted from the model's shape and the lengths. The floor of
a phase is its operations at the best rate seen, or for sampling, if that takes longer, its bytes at the bandwidth.
The work of a step is that of benchmarks/step_time.py.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import torch

from benchmarks.entry import Entry, run_alone
from benchmarks.sides import run_side
from benchmarks.step_time import UNCOUNTED, make_job, per_step
from engine.planner.shapes import ModelShape, find_shape

REPETITIONS = 3
TRIALS = 7
"""Of a rate, of which the best counts."""
SQUARE = 1024
"""Side of the matrices at which a processor comes near to its peak."""
IN_CACHE, IN_MEMORY = 2**18, 2**28
"""Bytes that are copied: they fit into a core's own cache, and into no cache but the largest."""
FLOAT32 = 4


@dataclass(frozen=True, slots=True)
class Work:
    """What is computed for one batch of completions, in multiplications and additions, each counted as one."""

    rollout: float
    update: float
    rollout_bytes: float
    """Weights, keys and values that sampling reads."""


def count(shape: ModelShape, *, prompts: int, group: int, prompt: float, tokens: int) -> Work:
    """Return the least work of a step with prompts of `prompt` tokens and completions of `tokens` each.

    A token costs 2 operations per weight in a forward pass and 4 more in a backward pass, attention 4 · heads · dim
    per pair of tokens and layer, and as much again twice in the backward pass. A prompt is computed once per group, in
    sampling and in the update, and only completion tokens have logits.
    """
    rows, weights = prompts * group, shape.layers * sum(inputs * outputs for inputs, outputs in shape.linear_layers)
    head = shape.hidden * shape.vocabulary
    pair = 4 * shape.layers * shape.heads * shape.head_dim

    def pairs(first: float, last: float) -> float:
        """Return the pairs of a token and one up to itself, for the tokens after `first` up to `last`."""
        return (last * (last + 1) - first * (first + 1)) / 2

    whole = prompt + tokens - 1  # the last token is sampled and scored, and goes into no layer
    forward = 2 * weights * (prompts * prompt + rows * (tokens - 1)) + 2 * head * rows * tokens
    forward += pair * (prompts * pairs(0, prompt) + rows * pairs(prompt, whole))
    kept = 2 * FLOAT32 * shape.layers * shape.kv_heads * shape.head_dim
    read = FLOAT32 * (weights + head) * tokens + kept * rows * pairs(prompt, whole)
    return Work(rollout=forward, update=3 * forward, rollout_bytes=read)


def measure(*, repetitions: int = REPETITIONS) -> list[Entry]:
    """Return the machine's rates, and the CPU seconds of the phases of a step beside their floors."""
    torch.set_num_threads(1)
    job = make_job()
    shape = find_shape("tiny-math")
    if shape is None:
        raise RuntimeError("tiny-math has no shape that the planner can read")
    rows = int(job["batch"])
    best = matrix_rate(SQUARE, SQUARE, SQUARE)
    at_rollout, at_update = (layers_rate(shape, tokens) for tokens in (rows, rows * job["tokens"]))
    best = max(best, at_rollout, at_update)
    bandwidth, cached = copy_rate(IN_MEMORY), copy_rate(IN_CACHE)

    steps = [run_side(sys.executable, "benchmarks.step_ours", job)[UNCOUNTED:] for _ in range(repetitions)]
    prompt = median(step["prompt_tokens"] for step in steps[0]) / rows
    work = count(shape, prompts=rows // job["group"], group=job["group"], prompt=prompt, tokens=job["tokens"])
    floors = {
        "rollout": max(work.rollout / best, work.rollout_bytes / cached),
        "update": work.update / best,
    }
    floors["whole step"] = sum(floors.values())
    spent = {name: per_step(steps, f"{name}_cpu_s") for name in ("rollout", "update", "score")}
    spent["whole step"] = per_step(steps, "cpu_s")
    square, arithmetic = f"{SQUARE}x{SQUARE}", f"arithmetic at {best / 1e9:.0f} GFLOP/s"
    return [
        Entry(f"floor/matrix rate, {rows} rows", at_rollout / 1e9, best / 1e9, f"best, {square}", "GFLOP/s", TRIALS),
        Entry(
            f"floor/matrix rate, {rows * job['tokens']} rows", at_update / 1e9, best / 1e9, "best", "GFLOP/s", TRIALS
        ),
        Entry("floor/copying in memory", bandwidth / 1e9, cached / 1e9, "in cache", "GB/s", TRIALS),
        *(
            Entry(f"floor/{name}, tiny-math", spent[name], floors[name], arithmetic, "CPU s/step", repetitions)
            for name in floors
        ),
        Entry("floor/score, tiny-math", spent["score"], spent["whole step"], "whole step", "CPU s/step", repetitions),
    ]


def layers_rate(shape: ModelShape, rows: int) -> float:
    """Return operations per second over the matrix products of one decoder layer for `rows` tokens."""
    sizes = shape.linear_layers
    seconds = sum(2 * rows * inputs * outputs / matrix_rate(rows, inputs, outputs) for inputs, outputs in sizes)
    return sum(2 * rows * inputs * outputs for inputs, outputs in sizes) / seconds


def matrix_rate(rows: int, inputs: int, outputs: int) -> float:
    """Return operations per second of a float32 product (rows, inputs) · (inputs, outputs)."""
    left, right, product = torch.randn(rows, inputs), torch.randn(inputs, outputs), torch.empty(rows, outputs)
    return 2 * rows * inputs * outputs / _seconds(lambda: torch.mm(left, right, out=product))


def copy_rate(size: int) -> float:
    """Return bytes read per second when `size` bytes are copied; as many are written."""
    source = torch.zeros(size // FLOAT32)
    target = torch.zeros_like(source)
    return size / _seconds(lambda: target.copy_(source))


def _seconds(action: Callable[[], object]) -> float:
    """Return the CPU seconds of one `action`, the least of several trials of at least 20 ms each."""
    action()
    times, repeats = [], 1
    while len(times) < TRIALS:
        began = time.process_time()
        for _ in range(repeats):
            action()
        spent = time.process_time() - began
        if spent < 0.02:
            repeats *= 2
        else:
            times.append(spent / repeats)
    return min(times)


if __name__ == "__main__":
    run_alone("floor", __doc__, measure, REPETITIONS)
