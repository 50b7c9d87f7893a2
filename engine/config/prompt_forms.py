"""What each prompt asks of a completion: the reward that reads it, and the strings that end it.

They stand beside the prompts' names so that a prompt cannot be run with another's reward by accident.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.config.sections.task import PromptConfig, TaskConfig


@dataclass(frozen=True, slots=True)
class PromptForm:
    """The name of a reward and the stop strings; `chat` where the text goes into the model's chat template."""

    reward: str
    stop_strings: tuple[str, ...] = ()
    chat: bool = False


PROMPT_FORMS: Mapping[str, PromptForm] = {
    "r1_zero": PromptForm("answer_tag", ("</answer>",)),
    "question_only": PromptForm("boxed"),
    "minimal": PromptForm("boxed"),
    "reasoning": PromptForm("answer_tag", ("</answer>",)),
    "chat": PromptForm("boxed", chat=True),
    "number_only": PromptForm("plain", chat=True),
    "hash_line": PromptForm("gsm8k"),
    "answer_line": PromptForm("finqa"),
}

# Tasks whose problems carry a verifier; its reward reads the answer tags.
TASK_REWARDS: Mapping[str, str] = {"reasoning_gym": "reasoning_gym"}
READS_TAGS = ("answer_tag", "answer_tag_tolerant", *TASK_REWARDS.values())


def own_reward(prompt: PromptConfig, task: TaskConfig) -> str | None:
    """Return the reward that belongs to this task and prompt; None for a prompt of the person's own."""
    if task.name in TASK_REWARDS:
        return TASK_REWARDS[task.name]
    form = PROMPT_FORMS.get(prompt.name)
    return form.reward if form else None


def reward_name(prompt: PromptConfig, task: TaskConfig) -> str | None:
    """Return the reward that is used: the one named in the config, else the prompt's or the task's own."""
    return prompt.reward or own_reward(prompt, task)
