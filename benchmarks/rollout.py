"""Sampling: the transformers engine against `model.generate` on the same model, prompts and lengths."""

import time
from statistics import median
from typing import Any

import torch

from benchmarks.entry import Entry, run_alone
from engine.config import RunConfig
from engine.policy.policy import load_policy
from engine.rollout.protocol import SamplingParams
from engine.rollout.transformers_engine import TransformersEngine
from engine.tasks.prompts import load_prompt
from engine.tasks.task import load_task

PROMPTS, GROUP, REPETITIONS = 16, 8, 7
THREADS = 1


def measure() -> list[Entry]:
    """Return tokens per second of both, each row to its natural end, medians over alternating repetitions."""
    torch.set_num_threads(THREADS)
    config, policy = RunConfig(), load_policy("tiny-math")
    prompt = load_prompt("r1_zero")
    problems = load_task(config.task).train_batch(1, PROMPTS, seed=0)
    token_ids = [policy.encode(prompt.render(problem.question)) for problem in problems]
    engine = TransformersEngine(policy.model, policy.tokenizer)
    sampling = SamplingParams(max_tokens=config.rollout.max_tokens, stop_strings=prompt.stop_strings)
    inputs = padded(token_ids, policy.tokenizer)

    ours, theirs = [], []
    for seed in range(REPETITIONS + 1):
        began = time.perf_counter()
        groups = engine.generate(token_ids, n=GROUP, sampling=sampling, seed=seed)
        seconds = time.perf_counter() - began
        ours.append(sum(len(completion.token_ids) for group in groups for completion in group) / seconds)

        torch.manual_seed(seed)
        began = time.perf_counter()
        rows = policy.model.generate(
            **inputs,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=config.rollout.max_tokens,
            stop_strings=list(prompt.stop_strings),
            tokenizer=policy.tokenizer,
            output_scores=True,
            return_dict_in_generate=True,
        ).sequences[:, inputs["input_ids"].shape[1] :]
        seconds = time.perf_counter() - began
        theirs.append(float((rows != policy.tokenizer.pad_token_id).sum()) / seconds)
    return [
        Entry(
            f"rollout/tiny-math {PROMPTS}x{GROUP}, {THREADS} thread",
            ours=median(ours[1:]),
            other=median(theirs[1:]),
            other_name="model.generate",
            unit="tokens/s",
            n=REPETITIONS,
        )
    ]


def padded(token_ids: list[tuple[int, ...]], tokenizer: Any) -> dict[str, torch.Tensor]:
    """Return left-padded inputs in which each prompt stands once per completion, as `generate` wants them."""
    rows = [row for row in token_ids for _ in range(GROUP)]
    width = max(map(len, rows))
    pad = tokenizer.pad_token_id
    return {
        "input_ids": torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    }


if __name__ == "__main__":
    run_alone(measure)
