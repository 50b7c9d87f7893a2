"""Prompt templates: the text around a question, the reward that reads the answer, what ends it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.config import RunConfig
from engine.config.prompt_forms import PROMPT_FORMS, reward_name
from engine.errors import TaskError

PROMPT_FOLDER = Path(__file__).parent / "prompts"
PLACEHOLDER = "{question}"


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt text with one `{question}`, the name of its reward and the strings that end a completion.

    `chat`: the text is a user's message, which a model's chat template still has to go around.
    """

    name: str
    text: str
    reward: str
    stop_strings: tuple[str, ...] = ()
    chat: bool = False

    def render(self, question: str) -> str:
        """The prompt for `question`. Braces in the question stay as they are.

        Raises TaskError for a message without its chat template.
        """
        if self.chat:
            raise TaskError(f"prompt: {self.name!r} is a chat message; put it into a model's template with in_chat()")
        before, after = self.text.split(PLACEHOLDER)
        return before + question + after

    def message(self, question: str) -> str:
        """What the person says in the chat, without the template around it."""
        return replace(self, chat=False).render(question)

    def in_chat(self, tokenizer: Any) -> "PromptTemplate":
        """The prompt inside the tokenizer's chat template, the assistant's turn opened; others stay as they are.

        Raises TaskError where the tokenizer has no chat template, or its template changes the message.
        """
        if not self.chat:
            return self
        if not getattr(tokenizer, "chat_template", None):
            raise TaskError(
                f"prompt.name={self.name}: the tokenizer of this model has no chat template; choose another prompt, or "
                "an instruction-tuned model"
            )
        conversation = [{"role": "user", "content": self.text}]
        text: str = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
        if text.count(PLACEHOLDER) != 1:
            raise TaskError(
                f"prompt.name={self.name}: the chat template holds the message {text.count(PLACEHOLDER)} times; choose "
                "another prompt or another model"
            )
        return replace(self, text=_without_first_token(text, tokenizer), chat=False)


def load_prompt(name: str) -> PromptTemplate:
    """The template called `name`; its text is `prompts/<name>.txt`, as it stands.

    `r1_zero` and `question_only` are the texts of Stanford CS336 assignment 5; `r1_zero` goes back to
    DeepSeek-R1-Zero (arXiv:2501.12948, table 1). Raises TaskError for a name that is not known.
    """
    if name not in PROMPT_FORMS:
        known = ", ".join(sorted(PROMPT_FORMS))
        raise TaskError(f"prompt: {name!r} is not a known prompt; choose one of {known}.")
    text = (PROMPT_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    if text.count(PLACEHOLDER) != 1:
        raise TaskError(
            f"prompt: {name}.txt holds {PLACEHOLDER} {text.count(PLACEHOLDER)} times; a prompt holds it "
            "once; edit the file."
        )
    form = PROMPT_FORMS[name]
    return PromptTemplate(name, text, form.reward, form.stop_strings, form.chat)


def prompt_of(config: RunConfig) -> PromptTemplate:
    """The prompt of a run, with the reward that the config names or else that of the task or the prompt."""
    prompt, reward = config.prompt, reward_name(config.prompt, config.task)
    assert reward is not None  # held by a rule of the config, and so is the text of a custom prompt
    if prompt.name != "custom":
        return replace(load_prompt(prompt.name), reward=reward)
    assert prompt.text is not None
    return PromptTemplate("custom", prompt.text, reward, (prompt.stop_string,) if prompt.stop_string else ())


def _without_first_token(text: str, tokenizer: Any) -> str:
    """`text` without the start token that the tokenizer would put before it a second time."""
    start: str | None = getattr(tokenizer, "bos_token", None)
    if start and text.startswith(start) and list(tokenizer("").input_ids[:1]) == [tokenizer.bos_token_id]:
        return text.removeprefix(start)
    return text
