"""The config of a run that evaluates another run's checkpoint and trains nothing."""

from collections.abc import Iterator

from engine.config.run_config import RunConfig
from engine.config.sections import EvaluationConfig, GrpoConfig, ModelConfig, RolloutConfig
from engine.errors import FieldProblem


def evaluation_config(config: RunConfig, run_id: str, step: int) -> RunConfig:
    """Return the config that evaluates the checkpoint which run `run_id` with `config` has at `step`.

    Kept is what decides which problems are answered and how: model, task, prompt, length limits, batch, evaluation
    and seed. Every other field is as it is by default, for a run without steps does nothing with it; an adapter
    comes with its checkpoint.
    """
    model, rollout = config.model, config.rollout
    start = {"init_from": f"run:{run_id}@{step}", "gradient_checkpointing": ModelConfig().gradient_checkpointing}
    return RunConfig(
        model=model.model_copy(update=start),
        task=config.task,
        prompt=config.prompt,
        rollout=RolloutConfig(
            engine=rollout.engine,
            rollout_batch_size=rollout.rollout_batch_size,
            group_size=rollout.group_size,
            max_tokens=rollout.max_tokens,
            min_tokens=rollout.min_tokens,
        ),
        vllm=config.vllm,
        grpo=GrpoConfig(steps=0),
        evaluation=config.evaluation.model_copy(update={"every": EvaluationConfig().every}),
        seed=config.seed,
    )


def evaluation_problems(sft_steps: object, grpo_steps: object) -> Iterator[FieldProblem]:
    """Yield what is wrong with an evaluation that has steps of training."""
    for path, steps in (("sft.steps", sft_steps), ("grpo.steps", grpo_steps)):
        if isinstance(steps, int) and steps > 0:
            yield FieldProblem(
                path,
                f"{path}={steps}, but an evaluation trains nothing; set {path}=0, or launch a run that begins with "
                "the checkpoint (model.init_from)",
            )
