"""What vLLM does with tiny-math, as one JSON document: `python -m tests.rollout.vllm_checks FOLDER`.

A process of its own: vLLM changes threads, seeds and warnings of the process that it runs in.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch

from engine.policy.policy import TINY_MATH, Policy, load_policy, save_policy
from engine.rollout.protocol import SamplingParams
from engine.rollout.transformers_engine import TransformersEngine
from engine.rollout.vllm_engine import RolloutError, VllmEngine
from engine.tasks.prompts import load_prompt
from engine.types import Completion

GREEDY = SamplingParams(greedy=True, max_tokens=24, stop_strings=("</answer>",))
SAMPLED = SamplingParams(temperature=0.7, max_tokens=24, stop_strings=("</answer>",))
WARPED = SamplingParams(temperature=1.2, max_tokens=12, top_k=3, repetition_penalty=1.3)
N = 4


def start(policy: Policy, folder: Path) -> VllmEngine:
    """Return an engine with little room."""
    return VllmEngine(
        policy.model, policy.tokenizer, folder, max_model_len=128, max_rows=32, dtype="float32", cache_bytes=64 << 20
    )


def change_weights(policy: Policy) -> None:
    """Move every weight a little, as an update would."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weights in policy.model.parameters():
            weights.mul_(1 + 0.3 * torch.randn(weights.shape, generator=generator))


def token_ids(groups: list[list[Completion]]) -> list[list[list[int]]]:
    """Return what was drawn."""
    return [[list(each.token_ids) for each in group] for group in groups]


def largest_difference(policy: Policy, prompts: list[list[int]], groups: list[list[Completion]], at: float) -> float:
    """Return the largest |policy − sampler| log-prob of a drawn token."""
    largest = 0.0
    for prompt, group in zip(prompts, groups, strict=True):
        for completion in group:
            ids = torch.tensor([[*prompt, *completion.token_ids]])
            with torch.no_grad():
                scores = torch.log_softmax(policy.model(ids).logits[0] / at, -1)
            for place, token in enumerate(completion.token_ids):
                own = float(scores[len(prompt) - 1 + place, token])
                largest = max(largest, abs(own - float(completion.sampler_log_probs[place])))
    return largest


def main(folder: Path) -> dict[str, Any]:
    """Ask both engines the same, before and after a change of the weights."""
    torch.set_num_threads(1)
    policy = load_policy("tiny-math")
    state = torch.get_rng_state()
    engine, own = start(policy, TINY_MATH), TransformersEngine(policy.model, policy.tokenizer)
    untouched = bool(torch.equal(torch.get_rng_state(), state))
    prompt = load_prompt("r1_zero")
    # The last is longer than several blocks of the prefix cache.
    questions = ["What is 3 + 4?", "What is 12 - 5?", "What is 1 + 2 + 3 + 4? " * 3]
    prompts = [list(policy.encode(prompt.render(question))) for question in questions]

    def both() -> dict[str, Any]:
        return {
            "vllm": token_ids(engine.generate(prompts, n=1, sampling=GREEDY, seed=0)),
            "transformers": token_ids(own.generate(prompts, n=1, sampling=GREEDY, seed=0)),
        }

    found: dict[str, Any] = {"random_state_untouched": untouched, "before": both()}
    sampled = engine.generate(prompts, n=N, sampling=SAMPLED, seed=7)
    found["sampled"] = [token_ids(sampled), token_ids(engine.generate(prompts, n=N, sampling=SAMPLED, seed=7))]
    found["other_seed"] = token_ids(engine.generate(prompts, n=N, sampling=SAMPLED, seed=8))
    found["difference"] = largest_difference(policy, prompts, sampled, SAMPLED.temperature)
    found["ends"] = [
        [each.finish_reason, each.stop, each.text, policy.tokenizer.decode(list(each.token_ids))]
        for group in sampled
        for each in group
    ]
    found["warped_sums"] = [
        float(torch.tensor(each.sampler_log_probs).exp().max())
        for each in engine.generate(prompts[:1], n=N, sampling=WARPED, seed=3)[0]
    ]
    change_weights(policy)
    stale = token_ids(engine.generate(prompts, n=1, sampling=GREEDY, seed=0))
    found["first_version"] = engine.weight_version
    engine.weights_changed(5)
    found["after"] = both()
    found["stale"] = stale
    found["version"] = engine.weight_version
    save_policy(policy, folder / "changed")
    fresh = load_policy(str(folder / "changed"))
    found["fresh"] = token_ids(start(fresh, folder / "changed").generate(prompts, n=1, sampling=GREEDY, seed=0))
    try:
        engine.generate([[1] * 200], n=1, sampling=GREEDY, seed=0)
    except RolloutError as error:
        found["too_long"] = str(error)
    return found


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]))))
