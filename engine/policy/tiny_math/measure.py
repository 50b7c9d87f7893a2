"""Measures where tiny-math starts: `python -m engine.policy.tiny_math.measure`.

Plain `model.generate` on held-out problems, under both prompts; about a minute on one CPU core.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerFast, Qwen2ForCausalLM

from engine.policy.tiny_math import WEIGHTS
from engine.policy.tiny_math.tokenizer import load_tokenizer
from engine.rewards.verifiers import REWARDS
from engine.tasks import arithmetic
from engine.tasks.prompts import PromptTemplate, load_prompt
from engine.types import Problem, Reward

GROUP_SIZE = 8
ROWS_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Draws:
    """G completions of each of P problems: verdicts, lengths in tokens (end included), mean entropies in nats."""

    rewards_P_G: tuple[tuple[Reward, ...], ...]  # noqa: N815
    lengths: tuple[int, ...]
    finished: tuple[bool, ...]
    entropy: float


@dataclass(frozen=True, slots=True)
class StartValues:
    """What the policy does before training. Shares are of completions, `mixed_groups` of groups."""

    prompt: str
    problems: int
    accuracy: float
    greedy_accuracy: float
    pass_at_8: float
    mixed_groups: float
    format: float
    right_answer: float
    mean_length: float
    share_over_40_tokens: float
    cut_off: float
    mean_entropy: float
    prompt_tokens: float


def measure(
    model: Qwen2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    template: PromptTemplate,
    problems: Sequence[Problem],
    max_new_tokens: int,
) -> StartValues:
    """Start values at temperature 1 in groups of 8, and greedily once a problem."""
    sampled = draw(model, tokenizer, template, problems, max_new_tokens, group_size=GROUP_SIZE)
    greedy = draw(model, tokenizer, template, problems, max_new_tokens, group_size=None)
    flat = [reward for group in sampled.rewards_P_G for reward in group]
    right_in_group = [sum(reward.value == 1.0 for reward in group) for group in sampled.rewards_P_G]
    return StartValues(
        prompt=template.name,
        problems=len(problems),
        accuracy=_mean([reward.value == 1.0 for reward in flat]),
        greedy_accuracy=_mean([group[0].value == 1.0 for group in greedy.rewards_P_G]),
        pass_at_8=_mean([right > 0 for right in right_in_group]),
        mixed_groups=_mean([0 < right < GROUP_SIZE for right in right_in_group]),
        format=_mean([reward.parts["format"] for reward in flat]),
        right_answer=_mean([reward.parts["answer"] for reward in flat]),
        mean_length=_mean(sampled.lengths),
        share_over_40_tokens=_mean([length > 40 for length in sampled.lengths]),
        cut_off=_mean([not finished for finished in sampled.finished]),
        mean_entropy=sampled.entropy,
        prompt_tokens=_mean([len(tokenizer.encode(template.render(p.question))) for p in problems]),
    )


def draw(
    model: Qwen2ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    template: PromptTemplate,
    problems: Sequence[Problem],
    max_new_tokens: int,
    group_size: int | None,
) -> Draws:
    """Completions of every problem: `group_size` at temperature 1, or one greedy one where it is None."""
    rewards: list[list[Reward]] = [[] for _ in problems]
    lengths: list[int] = []
    finished: list[bool] = []
    entropy_sum = 0.0
    rows = [index for index in range(len(problems)) for _ in range(group_size or 1)]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        indices = rows[start : start + ROWS_AT_ONCE]
        prompts = [template.render(problems[index].question) for index in indices]
        batch = tokenizer(prompts, return_tensors="pt", padding=True)
        out = model.generate(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            do_sample=group_size is not None,
            temperature=1.0 if group_size is not None else None,
            top_k=0 if group_size is not None else None,
            top_p=1.0 if group_size is not None else None,
            max_new_tokens=max_new_tokens,
            stop_strings=list(template.stop_strings) or None,
            tokenizer=tokenizer,
            return_dict_in_generate=True,
            output_logits=True,
        )
        drawn = out.sequences[:, batch["input_ids"].shape[1] :]
        log_probs = torch.stack(out.logits, dim=1).log_softmax(dim=-1)  # (B, T, V)
        entropy = -(log_probs.exp() * log_probs).sum(dim=-1)  # (B, T)
        for row, index in enumerate(indices):
            ids = [token for token in drawn[row].tolist() if token != tokenizer.pad_token_id]
            text = tokenizer.decode(ids, skip_special_tokens=True)
            rewards[index].append(REWARDS[template.reward](text, problems[index].gold))
            lengths.append(len(ids))
            ended = ids[-1] == tokenizer.eos_token_id or text.endswith(tuple(template.stop_strings) or ("\0",))
            finished.append(ended)
            entropy_sum += entropy[row, : len(ids)].sum().item()
    return Draws(tuple(map(tuple, rewards)), tuple(lengths), tuple(finished), entropy_sum / sum(lengths))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    """The command line: prints one JSON object a prompt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", type=Path, default=WEIGHTS, help="folder (default: the package's)")
    parser.add_argument("--problems", type=int, default=256, help="held-out problems (default: %(default)s)")
    parser.add_argument("--max-new-tokens", type=int, default=64, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = Qwen2ForCausalLM.from_pretrained(arguments.weights)
    tokenizer = load_tokenizer(arguments.weights)
    problems = arithmetic.problems("test", arguments.problems, seed=arguments.seed)
    for name in ("r1_zero", "question_only"):
        torch.manual_seed(arguments.seed)
        values = measure(model, tokenizer, load_prompt(name), problems, arguments.max_new_tokens)
        print(json.dumps({key: _rounded(value) for key, value in asdict(values).items()}, indent=1))


def _rounded(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
