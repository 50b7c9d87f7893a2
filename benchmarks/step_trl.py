"""Steps of TRL's GRPOTrainer: a side of step_time and whole_run, in TRL's own environment, without this package.

Completions end where ours do, without a stop string for TRL to look for: tokens that hold it are end tokens of the
model, which costs TRL least. What costs time beside the step, or spares memory at the cost of time, is off.
"""

import itertools
import json
import random
import sys
import tempfile
import time
from typing import Any

from benchmarks.cpu import cpu_seconds
from benchmarks.peer_reward import pays

MARK = "measured: "


def measure(job: dict[str, Any]) -> list[dict[str, float]]:
    """Return CPU and wall seconds of each step, CPU seconds of its rollout, its tokens, reward and mixed groups."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    torch.set_num_threads(job["threads"])
    payments = random.Random(job["seed"])
    marks: list[dict[str, float]] = []
    counted = {"rollout_cpu_s": 0.0, "tokens": 0, "prompt_tokens": 0, "reward": 0.0, "mixed": 0.0}

    class Timed(GRPOTrainer):  # type: ignore[misc, unused-ignore]  # not installed where types are checked
        def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
            began = time.process_time()
            result = super()._generate_single_turn(*args, **kwargs)
            counted["rollout_cpu_s"] += time.process_time() - began
            counted["tokens"] += sum(map(len, result[0]))
            counted["prompt_tokens"] += sum(map(len, args[0]))
            return result

    class Marks(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            marks.append({"cpu_s": cpu_seconds(), "wall_s": time.perf_counter()} | counted)

        on_step_end = on_train_begin

    def paid(completions: list[str], gold: list[str], **_: Any) -> list[float]:
        if job["reward"] == "coin":
            values = [float(payments.random() < 0.5) for _ in completions]
        else:
            values = [pays(job["reward"], text, right) for text, right in zip(completions, gold, strict=True)]
        groups = [values[start : start + job["group"]] for start in range(0, len(values), job["group"])]
        counted["reward"] += sum(values) / len(values)
        counted["mixed"] += sum(len(set(of_group)) > 1 for of_group in groups) / len(groups)
        return values

    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32)
    # TRL takes them from here, for sampling and for the mask of what counts as completion.
    ends = model.generation_config.eos_token_id
    model.generation_config.eos_token_id = [*(ends if isinstance(ends, list) else [ends]), *job["stop_token_ids"]]
    with tempfile.TemporaryDirectory() as folder:
        arguments = GRPOConfig(
            output_dir=folder,
            max_steps=job["steps"],
            per_device_train_batch_size=job["micro_batch_size"],
            gradient_accumulation_steps=job["batch"] // job["micro_batch_size"],
            num_generations=job["group"],
            max_completion_length=job["tokens"],
            generation_kwargs={"min_new_tokens": job["min_tokens"]} if job["min_tokens"] else None,
            temperature=1.0,
            learning_rate=job["learning_rate"],
            lr_scheduler_type="constant",
            adam_beta2=job["adam_beta2"],
            max_grad_norm=job["max_grad_norm"],
            loss_type="grpo",
            beta=0.0,
            shuffle_dataset=False,
            seed=job["seed"],
            bf16=False,
            use_cpu=job["device"] == "cpu",
            gradient_checkpointing=False,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = Timed(
            model=model,
            reward_funcs=paid,
            args=arguments,
            train_dataset=Dataset.from_dict({"prompt": job["prompts"], "gold": job["golds"]}),
            callbacks=[Marks()],
        )
        trainer.train()
    return [{name: now[name] - before[name] for name in now} for before, now in itertools.pairwise(marks)]


if __name__ == "__main__":
    print(MARK + json.dumps(measure(json.load(sys.stdin))))
