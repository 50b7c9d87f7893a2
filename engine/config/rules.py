"""Rules that span fields."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from engine.config.prompt_forms import PROMPT_FORMS, READS_TAGS, reward_name
from engine.errors import ConfigError, FieldProblem

if TYPE_CHECKING:
    from engine.config.run_config import RunConfig

WITHOUT_RATIO = ("no_baseline", "reinforce_with_baseline")


def check_rules(config: "RunConfig") -> None:
    """Raise ConfigError with every broken rule at once."""
    problems = tuple(_problems(config))
    if problems:
        raise ConfigError(problems)


def _problems(config: "RunConfig") -> Iterator[FieldProblem]:
    rollout, grpo = config.rollout, config.grpo
    rows, group_size = rollout.rollout_batch_size, rollout.group_size
    if rows % group_size:
        yield FieldProblem(
            "rollout.rollout_batch_size",
            f"rollout_batch_size={rows} is not a multiple of group_size={group_size}; {_nearest(rows, group_size)}",
        )
    if rollout.min_tokens > rollout.max_tokens:
        yield FieldProblem(
            "rollout.min_tokens",
            f"min_tokens={rollout.min_tokens} is above max_tokens={rollout.max_tokens}; "
            f"use at most {rollout.max_tokens}",
        )
    train_batch = config.train_batch_size
    if train_batch > rows:
        yield FieldProblem(
            "grpo.train_batch_size",
            f"train_batch_size={train_batch} is above rollout_batch_size={rows}; use at most {rows}",
        )
    elif rows % train_batch:
        divisors = [size for size in range(1, rows + 1) if rows % size == 0]
        below = max(size for size in divisors if size < train_batch)
        above = min(size for size in divisors if size > train_batch)
        yield FieldProblem(
            "grpo.train_batch_size",
            f"train_batch_size={train_batch} does not divide rollout_batch_size={rows}; use {below} or {above}",
        )
    accumulation = grpo.gradient_accumulation_steps
    if train_batch % accumulation:
        fitting = [steps for steps in range(1, train_batch + 1) if train_batch % steps == 0]
        nearest = sorted(fitting, key=lambda steps: (abs(steps - accumulation), steps))[:2]
        yield FieldProblem(
            "grpo.gradient_accumulation_steps",
            f"gradient_accumulation_steps={accumulation} does not divide train_batch_size={train_batch}; "
            f"use {' or '.join(str(steps) for steps in sorted(nearest))}",
        )
    yield from _baseline_problems(config)
    yield from _ratio_problems(config)
    yield from _kl_problems(config)
    yield from _entropy_problems(config)
    yield from _truncation_problems(config)
    if rollout.dynamic_sampling and grpo.baseline == "none":
        yield FieldProblem(
            "rollout.dynamic_sampling",
            "dynamic_sampling=true leaves out flat groups, which do teach under baseline=none; "
            "set dynamic_sampling=false or baseline=group_mean",
        )
    if grpo.aggregation_constant is not None and grpo.aggregation != "constant":
        yield FieldProblem(
            "grpo.aggregation_constant",
            f"aggregation_constant={grpo.aggregation_constant} is used by aggregation=constant only, "
            f"not by aggregation={grpo.aggregation}; leave it empty or set aggregation=constant",
        )
    yield from _length_problems(config)
    yield from _start_problems(config)
    yield from _task_problems(config)
    yield from _prompt_problems(config)
    yield from _reward_problems(config)
    if config.rollout.engine == "vllm" and config.lora.rank is not None:
        yield FieldProblem(
            "rollout.engine",
            f"engine=vllm samples with whole weights, and lora.rank={config.lora.rank} trains adapters beside them; "
            "leave lora.rank empty or set engine=transformers",
        )


def _reward_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    reward = config.reward
    if not any((reward.answer, reward.format, reward.length, reward.repetition)):
        yield FieldProblem(
            "reward.answer",
            "answer=0, and so are format, length and repetition: no completion would earn anything; set answer=1",
        )
    if reward.placebo != "none" and config.grpo.learn_from == "correct":
        yield FieldProblem(
            "reward.placebo",
            f"placebo={reward.placebo} changes rewards, and learn_from=correct goes by verdicts; set placebo=none or "
            "learn_from=all",
        )


def _task_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    task = config.task
    if task.operands_min > task.operands_max:
        yield FieldProblem(
            "task.operands_min",
            f"operands_min={task.operands_min} is above operands_max={task.operands_max}; "
            f"use at most {task.operands_max}",
        )
    if task.name in ("jsonl", "finqa") and task.path is None:
        what = "your data" if task.name == "jsonl" else "FinQA's train.json, dev.json and test.json"
        yield FieldProblem(
            "task.path", f"path is empty, and task.name={task.name} needs one; give a file or folder of {what}"
        )
    if task.name == "reasoning_gym" and task.generator is None:
        yield FieldProblem(
            "task.generator",
            "generator is empty, and task.name=reasoning_gym needs one; give its name, such as chain_sum",
        )


def _prompt_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    prompt, task = config.prompt, config.task
    if prompt.name == "custom":
        count = 0 if prompt.text is None else prompt.text.count("{question}")
        if count != 1:
            yield FieldProblem(
                "prompt.text",
                f"text has {{question}} {count} times, and a custom prompt has it once; put it in for the question",
            )
        if reward_name(prompt, task) is None:
            yield FieldProblem(
                "prompt.reward",
                "reward is empty, and a custom prompt has none of its own; name the one that reads what your text asks "
                "for, such as answer_tag or boxed",
            )
    else:
        for field, value in (("text", prompt.text), ("stop_string", prompt.stop_string)):
            if value is not None:
                yield FieldProblem(
                    f"prompt.{field}",
                    f"{field} is used by prompt.name=custom only, not by prompt.name={prompt.name}; leave it empty or "
                    "set prompt.name=custom",
                )
        reward = reward_name(prompt, task)
        if task.name == "reasoning_gym" and reward in READS_TAGS and PROMPT_FORMS[prompt.name].reward not in READS_TAGS:
            fitting = " or ".join(name for name, form in PROMPT_FORMS.items() if form.reward in READS_TAGS)
            yield FieldProblem(
                "prompt.name",
                f"prompt.name={prompt.name} does not ask for <answer> tags, which reward={reward} reads; use {fitting}",
            )
    form = PROMPT_FORMS.get(prompt.name)
    if form is not None and form.chat and config.model.name == "tiny-math":
        yield FieldProblem(
            "prompt.name",
            f"prompt.name={prompt.name} needs a model with a chat template, and model.name=tiny-math has none; use "
            "r1_zero or question_only, or an instruction-tuned model such as smollm2-135m",
        )


def _length_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    phases = {"sft.steps": config.sft.steps, "grpo.steps": config.grpo.steps}
    if config.total_steps == 0:
        return
    name, shortest = min(((name, steps) for name, steps in phases.items() if steps), key=lambda phase: phase[1])
    if config.optimizer.warmup_steps > shortest:
        yield FieldProblem(
            "optimizer.warmup_steps",
            f"warmup_steps={config.optimizer.warmup_steps} is above {name}={shortest}; use at most {shortest}",
        )


def _start_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    start = config.model.init_from
    if start is not None and start.startswith("run:") and config.model.initial_checkpoint is None:
        yield FieldProblem(
            "model.init_from",
            f"init_from={start} names no checkpoint; write run:<id>@<step>, such as run:k7wq2m4x@40, or a folder",
        )


def _baseline_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    grpo = config.grpo
    if grpo.loss_type == "no_baseline" and (grpo.baseline != "none" or grpo.scale != "none"):
        yield FieldProblem(
            "grpo.loss_type",
            f"loss_type=no_baseline uses raw rewards, but baseline={grpo.baseline} and scale={grpo.scale}; "
            "set baseline=none and scale=none, or choose loss_type=reinforce_with_baseline",
        )
    if grpo.loss_type == "reinforce_with_baseline" and grpo.baseline == "none":
        yield FieldProblem(
            "grpo.baseline",
            "baseline=none contradicts loss_type=reinforce_with_baseline; "
            "use baseline=group_mean, baseline=leave_one_out or loss_type=no_baseline",
        )
    if grpo.learn_from == "correct" and (grpo.loss_type, grpo.baseline, grpo.scale) != ("no_baseline", "none", "none"):
        yield FieldProblem(
            "grpo.learn_from",
            "learn_from=correct learns from every correct completion alike, with an advantage of 1, but "
            f"loss_type={grpo.loss_type}, baseline={grpo.baseline} and scale={grpo.scale} make it depend on the others "
            "of its group; set loss_type=no_baseline, baseline=none and scale=none, or learn_from=all",
        )


def _ratio_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    grpo = config.grpo
    if grpo.dual_clip is not None and grpo.loss_type != "grpo_clip":
        yield FieldProblem(
            "grpo.dual_clip",
            f"dual_clip={grpo.dual_clip:g} is used by loss_type=grpo_clip only, not by loss_type={grpo.loss_type}; "
            "leave it empty or set loss_type=grpo_clip",
        )
    if grpo.ratio_level == "sequence" and grpo.loss_type in WITHOUT_RATIO:
        yield FieldProblem(
            "grpo.ratio_level",
            f"ratio_level=sequence has no meaning under loss_type={grpo.loss_type}, which has no ratio; "
            "use ratio_level=token or loss_type=grpo_clip",
        )


def _kl_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    kl = config.kl
    if kl.target is not None and kl.beta == 0:
        yield FieldProblem(
            "kl.target",
            f"target={kl.target:g} cannot be reached from beta=0, which the controller multiplies; "
            "set beta to where it shall start, such as 0.01, or leave target empty",
        )
    if config.kl_in_reward and config.grpo.learn_from == "correct":
        yield FieldProblem(
            "kl.placement",
            "placement=reward changes advantages, and under learn_from=correct each is 1; set placement=loss or beta=0",
        )
    if kl.reference == "copy" and kl.copy_every > config.grpo.steps and config.has_reference:
        yield FieldProblem(
            "kl.copy_every",
            f"copy_every={kl.copy_every} is above steps={config.grpo.steps}, so the copy is never renewed; "
            f"use at most {config.grpo.steps}, or reference=start",
        )


def _entropy_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    in_use = config.entropy.bonus > 0 or config.entropy.target is not None
    if in_use and config.logging.entropy_share < 1:
        yield FieldProblem(
            "logging.entropy_share",
            f"entropy_share={config.logging.entropy_share:g}, but the entropy bonus needs the entropy of every "
            "completion; set entropy_share=1, or entropy.bonus=0 with an empty entropy.target",
        )


def _truncation_problems(config: "RunConfig") -> Iterator[FieldProblem]:
    buffer, longest = config.truncation.overlong_buffer, config.rollout.max_tokens
    if buffer is not None and buffer >= longest:
        yield FieldProblem(
            "truncation.overlong_buffer",
            f"overlong_buffer={buffer} is not below max_tokens={longest}; use at most {max(longest - 1, 1)}",
        )


def _nearest(value: int, step: int) -> str:
    below, above = value // step * step, (value // step + 1) * step
    return f"use {below} or {above}" if below else f"use {above}"
