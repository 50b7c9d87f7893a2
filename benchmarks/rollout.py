"""Sampling: our engines against `model.generate` on the same model, prompts, lengths and threads, in float32.

Every completion has the full length, so early ends help nobody. Each way to sample runs in processes of its own, in
turn; the first batch of a process is not counted. Figures are tokens per CPU second (user and system, children
included), which hardly depend on what else the machine does, and tokens per second on the wall.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from statistics import median

from benchmarks.entry import Entry, LeftOut, Outcome, run_alone
from benchmarks.rollout_side import samplers
from benchmarks.sides import Job, Measured, Side, alternate
from engine.errors import PolicyError
from engine.policy.policy import encode_prompt, load_tokenizer_of, model_source
from engine.presets import load_preset
from engine.tasks.prompts import prompt_of
from engine.tasks.task import load_task

REPETITIONS, ROUNDS, THREADS = 3, 3, 1
PRESETS = {"tiny-math": "quick-start", "smollm2-135m": "smollm2-sums-cpu"}
"""A preset of each model, for prompts and the number of completions."""
TOKENS = {"tiny-math": 48, "smollm2-135m": 32}
PEER, SIDE = "generate", "benchmarks.rollout_side"


def make_job(model: str, *, tokens: int | None = None, rounds: int = ROUNDS) -> Job:
    """Return what every way to sample is given: the prompts of a preset's first step, as token ids.

    Raises:
        PolicyError: if the model is not there.
    """
    config = load_preset(PRESETS[model]).config
    tokenizer = load_tokenizer_of(model)
    prompt = prompt_of(config).in_chat(tokenizer)
    problems = load_task(config.task).train_batch(1, config.prompts_per_step, seed=config.seed)
    return {
        "model": model_source(model),
        "prompts": [encode_prompt(tokenizer, prompt.render(problem.question)) for problem in problems],
        "group": config.rollout.group_size,
        "tokens": tokens or TOKENS[model],
        "rounds": rounds,
        "threads": THREADS,
    }


def measure(models: Sequence[str] = tuple(PRESETS), *, repetitions: int = REPETITIONS) -> list[Outcome]:
    """Return tokens per second of our engines and of `generate`, medians over processes of those over their batches.

    Raises:
        RuntimeError: if one of them failed, or sampled other lengths than it was asked for.
    """
    outcomes: list[Outcome] = []
    for model in models:
        try:
            job = make_job(model)
        except PolicyError as error:
            outcomes.append(LeftOut(f"rollout/{model}", str(error)))
            continue
        shape = f"rollout/{model} {len(job['prompts'])}x{job['group']}x{job['tokens']}, {job['threads']} thread"
        names = list(samplers)
        if find_spec("vllm") is None:
            names.remove("vllm engine")
            outcomes.append(LeftOut(f"{shape}: vllm engine", "vLLM is not installed: make vllm"))
        sides = {f"{model}, {name}": Side(sys.executable, SIDE, job | {"sampler": name}) for name in names}
        measured = dict(zip(names, alternate(sides, repetitions).values(), strict=True))
        outcomes += entries(shape, job, measured)
    return outcomes


def entries(shape: str, job: Job, measured: dict[str, list[Measured]]) -> list[Entry]:
    """Return one entry per engine and unit.

    Raises:
        RuntimeError: if a batch has other lengths than the job asks for.
    """
    wanted = len(job["prompts"]) * job["group"] * job["tokens"]
    for name, processes in measured.items():
        sampled = sorted({each["tokens"] for rounds in processes for each in rounds})
        if sampled != [wanted]:
            raise RuntimeError(f"{shape}: {name} sampled {sampled} tokens, not {wanted}; the rates do not compare")
    return [
        Entry(
            f"{shape}: {name}{how}",
            ours=rate(measured[name], figure),
            other=rate(measured[PEER], figure),
            other_name="model.generate",
            unit=unit,
            n=len(measured[PEER]),
        )
        for name in measured
        if name != PEER
        for figure, unit, how in (("cpu_s", "tokens/CPU s", ""), ("wall_s", "tokens/s", ", by the wall"))
    ]


def rate(processes: Sequence[Measured], figure: str) -> float:
    """Return the median over processes of the median over their batches, the first left out, of tokens per second."""
    return median(median(each["tokens"] / each[figure] for each in rounds[1:]) for rounds in processes)


if __name__ == "__main__":
    run_alone("rollout", __doc__, measure, REPETITIONS)
