"""Where problems come from, and how they are put to the model."""

from typing import Literal

from engine.config.sections.section import Section, about

PromptName = Literal["r1_zero", "question_only"]
Operator = Literal["+", "-"]


class TaskConfig(Section):
    """Where the problems come from."""

    name: Literal["arithmetic"] = about("arithmetic", "The task; `arithmetic` generates its problems.")
    operands_min: int = about(2, "Fewest numbers in one problem.", unit="numbers", ge=2, le=8)
    operands_max: int = about(4, "Most numbers in one problem.", unit="numbers", ge=2, le=8)
    largest_operand: int = about(20, "Largest number in a problem.", ge=2, le=999)
    operators: tuple[Operator, ...] = about(("+", "-"), "Operators that may stand between numbers.", min_length=1)


class PromptConfig(Section):
    """How a question is put to the model; the prompt brings its reward and its stop strings."""

    name: PromptName = about("r1_zero", "`r1_zero` asks for tags, `question_only` for a boxed answer.")
