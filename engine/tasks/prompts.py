"""Prompt templates: the text around a question, the reward that reads the answer, what ends it."""

from dataclasses import dataclass
from pathlib import Path

from engine.errors import TaskError

PROMPT_FOLDER = Path(__file__).parent / "prompts"
PLACEHOLDER = "{question}"


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """A prompt text with one `{question}`, the name of its reward and the strings that end a completion."""

    name: str
    text: str
    reward: str
    stop_strings: tuple[str, ...] = ()

    def render(self, question: str) -> str:
        """The prompt for `question`. Braces in the question stay as they are."""
        before, after = self.text.split(PLACEHOLDER)
        return before + question + after


# A new prompt is a text file in `prompts/` and a line here: its reward, its stop strings.
REWARD_AND_STOP_STRINGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "r1_zero": ("answer_tag", ("</answer>",)),
    "question_only": ("boxed", ()),
}


def load_prompt(name: str) -> PromptTemplate:
    """The template called `name`; its text is `prompts/<name>.txt`, as it stands.

    `r1_zero` and `question_only` are the texts of Stanford CS336 assignment 5; `r1_zero` goes back to
    DeepSeek-R1-Zero (arXiv:2501.12948, table 1). Raises TaskError for a name that is not known.
    """
    if name not in REWARD_AND_STOP_STRINGS:
        known = ", ".join(sorted(REWARD_AND_STOP_STRINGS))
        raise TaskError(f"prompt: {name!r} is not a known prompt; choose one of {known}.")
    text = (PROMPT_FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    if text.count(PLACEHOLDER) != 1:
        raise TaskError(
            f"prompt: {name}.txt holds {PLACEHOLDER} {text.count(PLACEHOLDER)} times; a prompt holds it "
            "once; edit the file."
        )
    reward, stop_strings = REWARD_AND_STOP_STRINGS[name]
    return PromptTemplate(name=name, text=text, reward=reward, stop_strings=stop_strings)
