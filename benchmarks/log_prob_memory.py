"""Memory of the log-probs: chunks of limited logits against all logits at once, at a vocabulary of 152k.

A model with a small hidden state, so that little but the logits takes memory. Each measurement is a process of its
own: the peak of its resident set over what was resident before, forward and backward pass, entropy on. Linux only.
"""

import argparse
import subprocess
import sys
from statistics import median

import psutil
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from benchmarks.entry import Entry, run_alone
from engine.training.batch import Batch
from engine.training.forward import score_tokens
from engine.training.memory import ResidentPeak

ROWS, PROMPT, TOKENS, VOCABULARY, HIDDEN = 4, 8, 1024, 152_000, 64
LIMITS, WHOLE = (512, 64), 1_000_000
REPETITIONS, THREADS = 1, 1


def measure(*, repetitions: int = REPETITIONS) -> list[Entry]:
    """Return peak bytes under each limit and without one; they vary by a few percent."""
    peaks: dict[int, list[int]] = {limit: [] for limit in (*LIMITS, WHOLE)}
    for _ in range(repetitions):
        for limit, found in peaks.items():
            command = [sys.executable, "-m", "benchmarks.log_prob_memory", "--peak", str(limit)]
            found.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return [
        Entry(
            f"log-probs/peak memory {ROWS}x{TOKENS}, V={VOCABULARY}, {limit} MiB of logits",
            ours=median(peaks[limit]),
            other=median(peaks[WHOLE]),
            other_name="all logits",
            unit="bytes",
            n=repetitions,
        )
        for limit in LIMITS
    ]


def peak_bytes(logits_memory: int) -> int:
    """Return by how much one forward and backward pass raises the resident set of this process."""
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    model = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=VOCABULARY,
            hidden_size=HIDDEN,
            intermediate_size=2 * HIDDEN,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            tie_word_embeddings=True,
        )
    ).eval()
    small, large = random_batch(tokens=2), random_batch(tokens=TOKENS)
    # What is loaded or allocated once, the gradients among it, is there before.
    forward_and_backward(model, small, logits_memory)
    probe, before = ResidentPeak(), psutil.Process().memory_info().rss
    probe.reset()
    forward_and_backward(model, large, logits_memory)
    return probe.peak() - before


def forward_and_backward(model: Qwen2ForCausalLM, batch: Batch, logits_memory: int) -> None:
    """Leave the gradient of the summed log-probs in `model`."""
    score_tokens(model, batch, temperature=0.7, logits_memory=logits_memory).log_probs.sum().backward()


def random_batch(tokens: int) -> Batch:
    """Return completions of `tokens` random tokens each."""
    input_ids = torch.randint(0, VOCABULARY, (ROWS, PROMPT + tokens))
    mask = torch.ones(ROWS, tokens, dtype=torch.bool)
    return Batch(
        input_ids=input_ids,
        response_ids=input_ids[:, PROMPT:],
        response_mask=mask,
        loss_mask=mask,
        sampler_log_probs=torch.zeros(ROWS, tokens),
        prompt_lengths=torch.full((ROWS,), PROMPT),
        response_lengths=torch.full((ROWS,), tokens),
        advantages=torch.zeros(ROWS),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--peak", type=int)
    given, _ = parser.parse_known_args()
    if given.peak is None:
        run_alone("log_prob_memory", __doc__, measure, REPETITIONS)
    else:
        print(peak_bytes(given.peak))
