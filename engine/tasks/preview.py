"""What a run would be asked, before it starts: plain data for the form, without a model."""

from dataclasses import dataclass

from engine.config import RunConfig
from engine.tasks.prompts import PromptTemplate, prompt_of
from engine.tasks.schedule import DataSchedule
from engine.tasks.task import Task, load_task
from engine.types import Problem, Split


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """A problem as it is put; lengths in characters. Of a chat prompt the message, without the model's template."""

    problem_id: str
    split: Split
    question: str
    prompt: str
    gold: str
    prompt_length: int
    question_length: int
    gold_length: int


@dataclass(frozen=True, slots=True)
class Preview:
    """Rows and what goes for all of them. `sentences` say what was found in the data, and how it is dealt out."""

    rows: tuple[PreviewRow, ...]
    reward: str
    stop_strings: tuple[str, ...]
    in_chat_template: bool
    schedule: DataSchedule | None
    sentences: tuple[str, ...]


def preview(config: RunConfig, n: int = 5) -> Preview:
    """The first `n` problems of the first step, with what the run is told of its data.

    Raises TaskError where the run could not begin: no data, too little of it for a step or for the evaluation.
    """
    return preview_of(load_task(config.task), config, n)


def preview_of(task: Task, config: RunConfig, n: int = 5) -> Preview:
    """The same of a task that is loaded already. A run without GRPO is asked its held-out problems alone.

    Raises TaskError as `preview` does.
    """
    prompt, asked = prompt_of(config), config.evaluation
    held_out = task.problems(asked.split, asked.size, seed=asked.seed)
    first = task.train_batch(1, config.prompts_per_step, seed=config.seed) if config.grpo.steps else held_out
    dealt = task.schedule(config.prompts_per_step) if config.grpo.steps else None
    return Preview(
        rows=tuple(_row(problem, prompt) for problem in first[:n]),
        reward=prompt.reward,
        stop_strings=prompt.stop_strings,
        in_chat_template=prompt.chat,
        schedule=dealt,
        sentences=(*data_sentences(task, config), *_held_out_sentences(config, len(held_out))),
    )


def data_sentences(task: Task, config: RunConfig) -> tuple[str, ...]:
    """What there is to say of a run's data: what was found in it, and how it is dealt out to the steps."""
    dealt = task.schedule(config.prompts_per_step) if config.grpo.steps else None
    found = task.report.sentences if task.report else ()
    return (*found, dealt.sentence) if dealt else found


def _held_out_sentences(config: RunConfig, there: int) -> tuple[str, ...]:
    size, split = config.evaluation.size, config.evaluation.split
    if there >= size:
        return ()
    return (
        f"evaluation.size={size} is above the {there:,} {split} problems there are: each evaluation asks them all.",
    )


def _row(problem: Problem, prompt: PromptTemplate) -> PreviewRow:
    text = prompt.message(problem.question)
    lengths = len(text), len(problem.question), len(problem.gold)
    return PreviewRow(problem.problem_id, problem.split, problem.question, text, problem.gold, *lengths)
