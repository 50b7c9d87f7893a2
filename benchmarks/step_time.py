"""A GRPO step at equal work against TRL's GRPOTrainer: same model, prompts, lengths, batch, float32, threads.

Each side runs in a process of its own, in turn, never both at once: ours here, TRL in an environment of its own (made
once, see benchmarks/trl_environment.py). Every completion has the full length on either side, and rewards are a coin's,
so that almost every group teaches: neither early ends nor groups left out help. CPU seconds (user and system) are
compared beside wall seconds, since they hardly depend on what else the machine does. How long runs take in which
completions end by themselves and groups may be flat is measured by benchmarks/whole_run.py.

    python -m benchmarks.step_time --json
    python -m benchmarks.step_time --model FOLDER --batch 16 --micro-batch 16 --steps 3
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from benchmarks.entry import Entry, command_line, show
from benchmarks.sides import Job, Measured, Side, alternate, check_prompts
from benchmarks.step_ours import job_config
from benchmarks.trl_environment import TRL, default_folder, python_of
from engine.policy.policy import TINY_MATH
from engine.tasks.prompts import prompt_of
from engine.tasks.task import load_task

REPETITIONS = 3
UNCOUNTED = 1
"""Steps of a process that are not counted: the first one, which warms up."""
PER_STEP = {"cpu_s": "CPU s/step", "wall_s": "wall s/step", "rollout_cpu_s": "CPU s/step", "rest_cpu_s": "CPU s/step"}
NAMES = {
    "cpu_s": "all",
    "wall_s": "all, by the wall",
    "rollout_cpu_s": "rollout",
    "rest_cpu_s": "all but rollout",
}


def make_job(
    model: Path = TINY_MATH, *, batch: int = 128, micro_batch: int = 128, tokens: int = 48, steps: int = 6
) -> Job:
    """Return what both sides do: `steps` steps of `batch` completions in groups of 8, the first of them not counted."""
    job: Job = {
        "model": str(model),
        "device": "cpu",
        "threads": 1,
        "seed": 0,
        "batch": batch,
        "micro_batch_size": micro_batch,
        "group": 8,
        "tokens": tokens,
        "min_tokens": tokens,
        "stop_token_ids": [],
        "reward": "coin",
        "steps": steps,
        "learning_rate": 1e-5,
        "max_grad_norm": 1.0,
    }
    config = job_config(job)
    task, prompt = load_task(config.task), prompt_of(config)
    problems = [
        problem
        for step in range(1, steps + 1)
        for problem in task.train_batch(step, config.prompts_per_step, seed=config.seed)
    ]
    return job | {
        "adam_beta2": config.optimizer.beta2,
        "prompts": [prompt.render(problem.question) for problem in problems],
        "golds": [problem.gold for problem in problems],
    }


def measure(job: Job | None = None, *, repetitions: int = REPETITIONS) -> list[Entry]:
    """Return seconds per step of both, medians over the steps of `repetitions` alternating pairs of processes.

    Raises:
        RuntimeError: if the two did not work on the same number of tokens, or one of them failed.
        MissingPeerError: if TRL cannot be installed.
    """
    job = job or make_job()
    pythons = {"ours": sys.executable, "trl": str(python_of(default_folder()))}
    measured = alternate(
        {name: Side(python, f"benchmarks.step_{name}", job) for name, python in pythons.items()}, repetitions
    )
    sides = {name: [steps[UNCOUNTED:] for steps in of] for name, of in measured.items()}
    check_tokens(job, *([step for steps in sides[side] for step in steps] for side in pythons))
    shape = f"{Path(job['model']).name if Path(job['model']) != TINY_MATH else 'tiny-math'} "
    shape += f"{job['batch'] // job['group']}x{job['group']}x{job['tokens']}, {job['threads']} thread"
    return [
        Entry(
            f"step/{NAMES[figure]}, {shape}",
            ours=per_step(sides["ours"], figure),
            other=per_step(sides["trl"], figure),
            other_name=f"GRPOTrainer, {TRL}",
            unit=unit,
            n=repetitions,
        )
        for figure, unit in PER_STEP.items()
    ]


def per_step(measured: Sequence[Measured], figure: str) -> float:
    """Return the median over processes of the median over their steps."""
    return median(median(_figure(step, figure) for step in steps) for steps in measured)


def _figure(step: dict[str, float], figure: str) -> float:
    return step["cpu_s"] - step["rollout_cpu_s"] if figure == "rest_cpu_s" else step[figure]


def check_tokens(job: Job, ours: Measured, theirs: Measured) -> None:
    """Check that every step sampled the tokens that the job asks for, behind prompts of the same lengths.

    Raises:
        RuntimeError: if one did not.
    """
    wanted = job["batch"] * job["tokens"]
    sampled = sorted({step["tokens"] for step in (*ours, *theirs)})
    if sampled != [wanted]:
        raise RuntimeError(f"tokens={sampled} were sampled in a step, not {wanted}; the times do not compare")
    check_prompts(ours, theirs)


def main() -> None:
    """Measure what the command line asks for."""
    parser = command_line(__doc__, REPETITIONS)
    parser.add_argument("--model", type=Path, default=TINY_MATH, help="folder of the model; tiny-math unless given")
    parser.add_argument("--batch", type=int, default=128, help="completions per step")
    parser.add_argument("--micro-batch", type=int, default=128, help="completions per forward and backward pass")
    parser.add_argument("--tokens", type=int, default=48, help="length of every completion")
    parser.add_argument("--steps", type=int, default=6, help="steps per process; the first is not counted")
    given = parser.parse_args()
    job = make_job(
        given.model, batch=given.batch, micro_batch=given.micro_batch, tokens=given.tokens, steps=given.steps
    )
    show("step_time", lambda: measure(job, repetitions=given.repetitions), as_json=given.json)


if __name__ == "__main__":
    main()
