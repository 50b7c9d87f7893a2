"""One way to sample, for benchmarks/rollout.py: completions of one length, in a process of its own.

Ours report the log-prob of every token besides; `model.generate` is asked for tokens alone.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.cpu import cpu_seconds
from benchmarks.step_trl import MARK
from engine.policy.policy import Policy, load_policy
from engine.rollout.protocol import RolloutEngine, SamplingParams
from engine.rollout.transformers_engine import TransformersEngine
from engine.rollout.vllm_engine import VllmEngine

Sample = Callable[[int], int]  # takes a seed, and gives the number of tokens sampled
CACHE_BYTES = 2**30


def measure(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return CPU and wall seconds and tokens of each of `rounds` batches."""
    torch.set_num_threads(job["threads"])
    policy = load_policy(job["model"], device="cpu")
    sample = samplers[job["sampler"]](policy, job)
    rounds = []
    for seed in range(job["rounds"]):
        cpu, wall = cpu_seconds(), time.perf_counter()
        tokens = sample(seed)
        rounds.append({"cpu_s": cpu_seconds() - cpu, "wall_s": time.perf_counter() - wall, "tokens": tokens})
    return rounds


def generate(policy: Policy, job: dict[str, Any]) -> Sample:
    """Return sampling with transformers' `generate`, which computes a prompt once per completion."""
    inputs = padded(job["prompts"], job["group"], policy.tokenizer.pad_token_id)

    def sample(seed: int) -> int:
        torch.manual_seed(seed)
        rows = policy.model.generate(
            **inputs,
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            max_new_tokens=job["tokens"],
            min_new_tokens=job["tokens"],
        )
        return rows[:, inputs["input_ids"].shape[1] :].numel()

    return sample


def padded(prompts: list[list[int]], group: int, pad: int) -> dict[str, torch.Tensor]:
    """Return left-padded inputs in which each prompt stands once per completion, as `generate` wants them."""
    rows = [row for row in prompts for _ in range(group)]
    width = max(map(len, rows))
    return {
        "input_ids": torch.tensor([[pad] * (width - len(row)) + list(row) for row in rows]),
        "attention_mask": torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows]),
    }


def transformers_engine(policy: Policy, job: dict[str, Any]) -> Sample:
    """Return sampling with our engine of transformers."""
    return _engine_sample(TransformersEngine(policy.model, policy.tokenizer), job)


def vllm_engine(policy: Policy, job: dict[str, Any]) -> Sample:
    """Return sampling with our engine of vLLM; the weights are pushed before every batch, as in training.

    The seed of a batch stands for the version of its weights.
    """
    longest = max(map(len, job["prompts"])) + job["tokens"]
    engine = VllmEngine(
        policy.model,
        policy.tokenizer,
        job["model"],
        max_model_len=longest,
        max_rows=len(job["prompts"]) * job["group"],
        dtype="float32",
        cache_bytes=CACHE_BYTES,
    )
    return _engine_sample(engine, job)


def _engine_sample(engine: RolloutEngine, job: dict[str, Any]) -> Sample:
    sampling = SamplingParams(max_tokens=job["tokens"], min_tokens=job["tokens"])

    def sample(seed: int) -> int:
        engine.weights_changed(seed)
        groups = engine.generate(job["prompts"], n=job["group"], sampling=sampling, seed=seed)
        return sum(len(completion.token_ids) for group in groups for completion in group)

    return sample


samplers: dict[str, Callable[[Policy, dict[str, Any]], Sample]] = {
    "generate": generate,
    "transformers engine": transformers_engine,
    "vllm engine": vllm_engine,
}

if __name__ == "__main__":
    print(MARK + json.dumps(measure(json.load(sys.stdin))))
