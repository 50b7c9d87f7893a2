"""Pre-trains tiny-math: `python -m engine.policy.tiny_math.pretrain`.

One command makes the tokenizer, the corpus and the weights. It takes 16 to 30 minutes on one CPU core, as busy
as that is; a checkpoint is written every few hundred steps, and `--resume` goes on from the last one.
"""

import argparse
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from engine.errors import CheckpointError
from engine.policy.tiny_math import WEIGHTS
from engine.policy.tiny_math.corpus import Sample, sample
from engine.policy.tiny_math.tokenizer import MAX_POSITIONS, build_tokenizer, save_tokenizer

WARMUP_STEPS = 100
BATCHES_PER_POOL = 8  # batches drawn together and sorted by length, so that little of a batch is padding
IGNORED = -100
TOKENS_PER_TEXT = 20  # learned tokens in a text, about
CHECKPOINT = "pretraining.pt"


@dataclass(frozen=True, slots=True)
class Batch:
    """`input_ids` and `labels` of shape (B, T), padded on the right; a label is IGNORED where no loss is taken."""

    input_ids: torch.Tensor
    labels: torch.Tensor


def build_model(vocabulary: int, end_id: int, pad_id: int) -> Qwen2ForCausalLM:
    """An untrained tiny-math: Qwen2, 4 layers of width 128, about 0.8 million parameters, tied embeddings."""
    config = Qwen2Config(
        vocab_size=vocabulary,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        use_sliding_window=False,
        bos_token_id=None,
        eos_token_id=end_id,
        pad_token_id=pad_id,
    )
    model = Qwen2ForCausalLM(config)
    model.generation_config = GenerationConfig(eos_token_id=end_id, pad_token_id=pad_id)
    return model


def batches(tokenizer: PreTrainedTokenizerFast, seed: int, start: int, size: int) -> Iterator[Batch]:
    """The batches of steps `start` + 1, `start` + 2, …: the same for a seed wherever the stream is entered."""
    pool_index, skip = divmod(start, BATCHES_PER_POOL)
    while True:
        rng = random.Random(f"tiny-math/{seed}/{pool_index}")
        rows = [encode(tokenizer, sample(rng)) for _ in range(size * BATCHES_PER_POOL)]
        rows.sort(key=lambda row: len(row[0]))
        pool = [rows[i : i + size] for i in range(0, len(rows), size)]
        rng.shuffle(pool)
        for rows_of_batch in pool[skip:]:
            yield _pad(rows_of_batch, tokenizer.pad_token_id)
        pool_index, skip = pool_index + 1, 0


def encode(tokenizer: PreTrainedTokenizerFast, text: Sample) -> tuple[list[int], list[int]]:
    """Token ids and labels of one text, of equal length."""
    ids: list[int] = []
    labels: list[int] = []
    for piece, learned in text.pieces:
        piece_ids = tokenizer.encode(piece)
        ids += piece_ids
        labels += piece_ids if learned else [IGNORED] * len(piece_ids)
    return ids, labels


def next_token_loss(model: Qwen2ForCausalLM, batch: Batch) -> torch.Tensor:
    """The sum of −log p over the learned tokens, in nats, divided by B · TOKENS_PER_TEXT.

    A constant divides, so that every token counts the same. A mean over the batch would not do: batches are
    sorted by length, and the opening of a short text, a blurt, would count more than that of a long one.
    Causal attention never sees the padding on the right.
    """
    logits = model(input_ids=batch.input_ids).logits[:, :-1]
    total = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.labels[:, 1:].flatten(), ignore_index=IGNORED, reduction="sum"
    )
    return total / (len(batch.input_ids) * TOKENS_PER_TEXT)


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Linear warm-up, then a half cosine down to a hundredth of `peak` at the last step."""
    if step <= WARMUP_STEPS:
        return peak * step / WARMUP_STEPS
    done = (step - WARMUP_STEPS) / max(1, steps - WARMUP_STEPS)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def pretrain(
    out: Path,
    *,
    steps: int,
    batch_size: int,
    peak_learning_rate: float,
    seed: int,
    save_every: int,
    resume: bool,
) -> None:
    """Trains and writes `out`: weights, config, generation config, tokenizer, and the checkpoint to resume from.

    Raises CheckpointError where `resume` is asked and `out` has no checkpoint.
    """
    torch.manual_seed(seed)
    tokenizer = build_tokenizer()
    model = build_model(len(tokenizer), tokenizer.eos_token_id, tokenizer.pad_token_id)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak_learning_rate, betas=(0.9, 0.98), weight_decay=0.01)
    start = _load_checkpoint_into(model, optimizer, out) if resume else 0
    stream = batches(tokenizer, seed, start, batch_size)
    columns = (
        TextColumn("pre-training"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("loss {task.fields[loss]:.3f}"),
    )
    with Progress(*columns) as progress:
        bar = progress.add_task("", total=steps, completed=start, loss=float("nan"))
        for step in range(start + 1, steps + 1):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, steps, peak_learning_rate)
            loss = next_token_loss(model, next(stream))
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            progress.update(bar, completed=step, loss=loss.item())
            if step % save_every == 0 or step == steps:
                progress.print(f"step {step}: loss {loss.item():.4f}")
                model.save_pretrained(out)
                save_tokenizer(out)
                _save_checkpoint(model, optimizer, out, step)


def _pad(rows: list[tuple[list[int], list[int]]], pad_id: int) -> Batch:
    width = max(len(ids) for ids, _ in rows)
    return Batch(
        input_ids=torch.tensor([ids + [pad_id] * (width - len(ids)) for ids, _ in rows]),
        labels=torch.tensor([labels + [IGNORED] * (width - len(labels)) for _, labels in rows]),
    )


def _save_checkpoint(model: Qwen2ForCausalLM, optimizer: torch.optim.Optimizer, out: Path, step: int) -> None:
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    unfinished = out / f"{CHECKPOINT}.unfinished"
    torch.save(state, unfinished)
    unfinished.replace(out / CHECKPOINT)


def _load_checkpoint_into(model: Qwen2ForCausalLM, optimizer: torch.optim.Optimizer, out: Path) -> int:
    path = out / CHECKPOINT
    if not path.exists():
        raise CheckpointError(f"--resume: {path} does not exist, so there is nothing to resume; leave --resume out.")
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step: int = state["step"]
    return step


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="folder to write (default: the package's)")
    parser.add_argument("--steps", type=int, default=2400, help="optimizer steps (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=96, help="texts a step (default: %(default)s)")
    parser.add_argument("--learning-rate", type=float, default=3e-3, help="peak (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    parser.add_argument("--save-every", type=int, default=200, help="steps (default: %(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    pretrain(
        arguments.out,
        steps=arguments.steps,
        batch_size=arguments.batch_size,
        peak_learning_rate=arguments.learning_rate,
        seed=arguments.seed,
        save_every=arguments.save_every,
        resume=arguments.resume,
    )


if __name__ == "__main__":
    main()
