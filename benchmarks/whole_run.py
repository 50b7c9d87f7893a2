"""Whole runs against TRL's GRPOTrainer: completions of natural length, real rewards, learning.

The quick start, all of its steps, and a few steps of SmolLM2-135M on sums, the latter with either engine of ours. Both
sides have the same model, problems in the same order, prompts (token by token), group size, limit of tokens, loss,
learning rate, AdamW, float32, threads, temperature 1; neither evaluates or writes checkpoints. Ours stores every
rollout besides. TRL samples with `generate` and pays by a rule of a few lines, benchmarks/peer_reward.py, which has to
agree with our grader on our completions. Its completions end at end tokens: a token that holds the stop string is one.

Counted is what every step costs from the first on, in CPU seconds (user and system, children included) and on the
wall; loading a model is not. So rows that ended, padding and groups that teach nothing count as each side treats them:
ours have no pass for a group whose rewards are all equal, TRL's have. What a step costs depends on what was sampled;
beside the seconds stand tokens per step, the share of mixed groups, and the reward of the last steps, from which to see
whether both have learned. Few steps, as those of SmolLM2, differ in these by chance: most of their groups are flat.

    python -m benchmarks.whole_run --repetitions 3 --json
    python -m benchmarks.whole_run quick-start --steps 10
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from statistics import fmean, median
from typing import NamedTuple

from benchmarks.entry import Entry, LeftOut, Outcome, command_line, say, show
from benchmarks.peer_reward import pays
from benchmarks.sides import Job, Measured, Side, alternate, check_prompts
from benchmarks.trl_environment import TRL, default_folder, python_of
from engine.config import RunConfig, leaves
from engine.errors import PolicyError
from engine.policy.policy import load_tokenizer_of, model_source
from engine.presets import load_preset
from engine.rollout.stops import DECODING
from engine.tasks.prompts import prompt_of
from engine.tasks.task import load_task

REPETITIONS = 1
LAST = 10
"""Steps at the end of a run over which its reward is averaged."""
LEAST_AGREEMENT = 0.99
"""Share of our completions that both rules have to pay alike."""


class Plan(NamedTuple):
    """A run that is measured: a preset, its first steps, and our engines; `uncounted` steps come before."""

    preset: str
    steps: int
    engines: tuple[str, ...]
    uncounted: int = 0


PLANS = {
    "quick-start": Plan("quick-start", 100, ("transformers",)),
    "smollm2": Plan("smollm2-sums-cpu", 3, ("transformers", "vllm"), uncounted=1),
}

# What TRL's side is told by its defaults: a preset that says otherwise would be another run.
SAME = {
    "grpo.loss_type": "grpo_clip",
    "grpo.baseline": "group_mean",
    "grpo.scale": "group_std",
    "grpo.std": "sample",
    "grpo.aggregation": "mean",
    "grpo.clip_eps": 0.2,
    "grpo.epochs_per_rollout_batch": 1,
    "grpo.train_batch_size": None,
    "rollout.temperature": 1.0,
    "rollout.dynamic_sampling": False,
    "model.dtype": "float32",
    "optimizer.schedule": "constant",
    "optimizer.warmup_steps": 0,
    "optimizer.weight_decay": 0.0,
    "optimizer.beta1": 0.9,
    "optimizer.adam_eps": 1e-8,
    "kl.beta": 0.0,
    "entropy.bonus": 0.0,
    "reward.placebo": "none",
}


def make_job(plan: Plan, engine: str) -> Job:
    """Return what both sides do under a plan; `engine` is ours.

    Raises:
        RuntimeError: if the preset asks for something that TRL's side is not told.
        PolicyError: if the model is not there.
    """
    steps = plan.uncounted + plan.steps
    overrides = {"model.device": "cpu", "rollout.engine": engine, "grpo.steps": steps}
    config = load_preset(plan.preset, overrides).config
    check_same(config)
    tokenizer = load_tokenizer_of(config.model.name)
    task, prompt = load_task(config.task), prompt_of(config).in_chat(tokenizer)
    problems = [
        problem
        for step in range(1, steps + 1)
        for problem in task.train_batch(step, config.prompts_per_step, seed=config.seed)
    ]
    return {
        "preset": plan.preset,
        "overrides": overrides,
        "model": model_source(config.model.name),
        "device": "cpu",
        "threads": 1,
        "seed": config.seed,
        "batch": config.rollout.rollout_batch_size,
        "micro_batch_size": config.micro_batch_size,
        "group": config.rollout.group_size,
        "tokens": config.rollout.max_tokens,
        "min_tokens": config.rollout.min_tokens,
        "stop_token_ids": stop_token_ids(tokenizer, prompt.stop_strings),
        "reward": prompt.reward,
        "steps": steps,
        "learning_rate": config.optimizer.learning_rate,
        "max_grad_norm": config.optimizer.max_grad_norm,
        "adam_beta2": config.optimizer.beta2,
        "prompts": [prompt.render(problem.question) for problem in problems],
        "golds": [problem.gold for problem in problems],
    }


def check_same(config: RunConfig) -> None:
    """Check that a config asks for what TRL's side does.

    Raises:
        RuntimeError: if it does not.
    """
    values = dict(leaves(config))
    differ = [f"{path}={values[path]}, not {value}" for path, value in SAME.items() if values[path] != value]
    if differ:
        raise RuntimeError(f"TRL's side would do something else: {'; '.join(differ)}; choose another preset")


def stop_token_ids(tokenizer: object, strings: Sequence[str]) -> list[int]:
    """Return the tokens that hold one of the stop strings.

    A string spelled out in several tokens ends our completions as well; TRL's go on, which is rare enough.

    Raises:
        RuntimeError: if no token holds one of them.
    """
    texts = tokenizer.batch_decode([[token_id] for token_id in range(len(tokenizer))], **DECODING)  # type: ignore[attr-defined, arg-type]
    found = {string: [token_id for token_id, text in enumerate(texts) if string in text] for string in strings}
    if not all(found.values()):
        raise RuntimeError(f"stop strings {strings}: no token holds one of them, so TRL's side would need to look")
    return sorted({token_id for of_one in found.values() for token_id in of_one})


def measure(names: Sequence[str] = (), *, steps: int | None = None, repetitions: int = REPETITIONS) -> list[Outcome]:
    """Return totals over the counted steps of each plan, medians over `repetitions` alternations.

    Raises:
        RuntimeError: if the sides had other prompts, pay by other rules, or one of them failed.
        MissingPeerError: if TRL cannot be installed.
    """
    python = str(python_of(default_folder()))
    outcomes: list[Outcome] = []
    for name in names or PLANS:
        plan = PLANS[name] if steps is None else PLANS[name]._replace(steps=steps)
        missing = [engine for engine in plan.engines if engine == "vllm" and find_spec("vllm") is None]
        outcomes += [LeftOut(f"run/{name}, {engine} engine", "vLLM is not installed: make vllm") for engine in missing]
        try:
            jobs = {engine: make_job(plan, engine) for engine in plan.engines if engine not in missing}
        except PolicyError as error:
            outcomes.append(LeftOut(f"run/{name}", str(error)))
            continue
        sides = {
            f"{name}, {engine} engine": Side(sys.executable, "benchmarks.step_ours", job)
            for engine, job in jobs.items()
        }
        trl = Side(python, "benchmarks.step_trl", next(iter(jobs.values())))
        measured = alternate(sides | {f"{name}, TRL": trl}, repetitions)
        theirs = measured.pop(f"{name}, TRL")
        for title, ours in measured.items():
            outcomes += entries(f"run/{title}", plan, trl.job["reward"], ours, theirs)
    return outcomes


def entries(title: str, plan: Plan, rule: str, ours: Sequence[Measured], theirs: Sequence[Measured]) -> list[Entry]:
    """Return what one of our engines and TRL took for a plan, beside what they made of it.

    Raises:
        RuntimeError: if they had other prompts, or pay by other rules.
    """
    for mine, other in zip(ours, theirs, strict=True):
        check_prompts(mine, other)
    agreement = fmean(
        pays(rule, text, gold) == value for steps in ours for step in steps for text, gold, value in step["answers"]
    )
    say(f"{title}: both rules pay {agreement:.2%} of our completions alike")
    if agreement < LEAST_AGREEMENT:
        raise RuntimeError(f"{title}: the rules pay {agreement:.2%} of our completions alike, which is too few")
    counted = [[steps[plan.uncounted :] for steps in of] for of in (ours, theirs)]
    n, shown = len(ours), f"{title}, {plan.steps} steps"

    def entry(what: str, unit: str, totals: Sequence[float]) -> Entry:
        return Entry(f"{shown}: {what}", *totals, other_name=f"GRPOTrainer, {TRL}", unit=unit, n=n)

    def total(figure: str) -> list[float]:
        return [median(sum(step[figure] for step in steps) for steps in of) for of in counted]

    mixed = [median(fmean(step["mixed"] for step in steps) for steps in of) for of in counted]
    last = [median(fmean(step["reward"] for step in steps[-LAST:]) for steps in of) for of in counted]
    return [
        entry("all", "CPU s", total("cpu_s")),
        entry("all, by the wall", "wall s", total("wall_s")),
        entry("rollout", "CPU s", total("rollout_cpu_s")),
        entry("completion tokens", "tokens/step", [tokens / plan.steps for tokens in total("tokens")]),
        entry("mixed groups", "share", mixed),
        entry(f"reward, last {min(LAST, plan.steps)} steps", "mean", last),
    ]


def main() -> None:
    """Measure what the command line asks for."""
    parser = command_line(__doc__, REPETITIONS)
    parser.add_argument("names", nargs="*", metavar="RUN", help=f"of {', '.join(PLANS)}; all of them unless given")
    parser.add_argument("--steps", type=int, help="counted steps, in place of those of each run")
    given = parser.parse_args()
    if set(given.names) - set(PLANS):
        parser.error(f"{', '.join(given.names)}: choose from {', '.join(PLANS)}")
    show("run", lambda: measure(given.names, steps=given.steps, repetitions=given.repetitions), as_json=given.json)


if __name__ == "__main__":
    main()
