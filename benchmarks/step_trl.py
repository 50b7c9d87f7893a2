"""Steps of TRL's GRPOTrainer, for benchmarks/step_time.py: runs in TRL's own environment, without this package.

Reads a job from standard input, and prints what it measured behind `MARK`, both as JSON.
"""

import itertools
import json
import random
import sys
import tempfile
import time
from typing import Any

MARK = "measured: "


def measure(job: dict[str, Any]) -> list[dict[str, float]]:
    """Return CPU and wall seconds of each step from the second on, CPU seconds of its rollout, its tokens."""
    import torch
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    torch.set_num_threads(job["threads"])
    payments = random.Random(job["seed"])
    marks: list[dict[str, float]] = []
    sampling = {"cpu_s": 0.0, "tokens": 0, "prompt_tokens": 0}

    class Timed(GRPOTrainer):  # type: ignore[misc, unused-ignore]  # not installed where types are checked
        def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            result = super()._generate_single_turn(*args, **kwargs)
            sampling["cpu_s"] += time.process_time() - began
            sampling["tokens"] += sum(map(len, result[0]))
            sampling["prompt_tokens"] += sum(map(len, args[0]))
            return result

    class Marks(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            marks.append({"cpu": time.process_time(), "wall": time.perf_counter()} | sampling)

    def coin(completions: list[str], **_: Any) -> list[float]:
        return [float(payments.random() < 0.5) for _ in completions]

    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder,
            max_steps=job["steps"],
            per_device_train_batch_size=job["micro_batch_size"],
            gradient_accumulation_steps=job["batch"] // job["micro_batch_size"],
            num_generations=job["group"],
            max_completion_length=job["tokens"],
            generation_kwargs={"min_new_tokens": job["tokens"]},
            learning_rate=job["learning_rate"],
            lr_scheduler_type="constant",
            max_grad_norm=job["max_grad_norm"],
            loss_type="grpo",
            beta=0.0,
            shuffle_dataset=False,
            seed=job["seed"],
            # What costs time beside the step, or spares memory at the cost of time, is off.
            bf16=False,
            use_cpu=job["device"] == "cpu",
            gradient_checkpointing=False,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            model_init_kwargs={"dtype": "float32"},
        )
        trainer = Timed(
            model=job["model"],
            reward_funcs=coin,
            args=arguments,
            train_dataset=Dataset.from_dict({"prompt": job["prompts"]}),
            callbacks=[Marks()],
        )
        trainer.train()
    return [
        {
            "cpu_s": now["cpu"] - before["cpu"],
            "wall_s": now["wall"] - before["wall"],
            "rollout_cpu_s": now["cpu_s"] - before["cpu_s"],
            "tokens": now["tokens"] - before["tokens"],
            "prompt_tokens": now["prompt_tokens"] - before["prompt_tokens"],
        }
        for before, now in itertools.pairwise(marks)
    ]


if __name__ == "__main__":
    print(MARK + json.dumps(measure(json.load(sys.stdin))))
