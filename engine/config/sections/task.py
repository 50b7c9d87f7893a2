"""Where problems come from, and how they are put to the model."""

from typing import Any, Literal

from pydantic import model_validator

from engine.config.sections.section import Section, about

TaskName = Literal["arithmetic", "gsm8k", "math", "finqa", "reasoning_gym", "jsonl"]
PromptName = Literal[
    "r1_zero", "question_only", "minimal", "reasoning", "chat", "number_only", "hash_line", "answer_line", "custom"
]
Operator = Literal["+", "-", "*"]

# `reasoning_gym:chain_sum` and `jsonl:data/mine.jsonl` say name and field at once.
_FIELD_AFTER_COLON = {"reasoning_gym": "generator", "jsonl": "path"}


class TaskConfig(Section):
    """Where the problems come from."""

    name: TaskName = about(
        "arithmetic",
        "The task; `arithmetic` generates its problems, and so does `reasoning_gym:NAME`; `jsonl:PATH` is data of "
        "your own.",
    )
    path: str | None = about(
        None,
        "Data file (JSONL, JSON, CSV, Parquet), a folder of them named after their splits, or a hub dataset as "
        "`owner/name` or `owner/name:subset`; empty takes the task's own on the hub.",
        min_length=1,
    )
    generator: str | None = about(None, "Generator of reasoning_gym, such as `chain_sum`.", min_length=1)
    generator_options: str | None = about(
        None, "Options of the generator, such as `min_terms=2; max_terms=4`; empty for its own.", min_length=1
    )
    question_column: str | None = about(
        None, "Column of the questions; a dot reaches into a nested one. Empty for the task's own.", min_length=1
    )
    answer_column: str | None = about(None, "Column of the gold answers; empty for the task's own.", min_length=1)
    id_column: str | None = about(
        None, "Column of an id for each problem; empty for the task's own, or a hash of the problem.", min_length=1
    )
    split_column: str | None = about(
        None, "Column that says train, validation or test; empty goes by the files.", min_length=1
    )
    validation_from: Literal["auto", "train", "test"] = about(
        "auto",
        "Where validation problems come from: `train` holds some out of training, `test` takes the test split, `auto` "
        "takes the data's own validation split and else holds some out.",
    )
    held_out_share: float = about(
        0.1, "Share of the training problems held out where validation comes from them.", gt=0.0, lt=1.0
    )
    overlap: Literal["leave_out", "keep"] = about(
        "leave_out", "What becomes of training problems that are also validation or test problems."
    )
    gold_faults: Literal["refuse", "leave_out"] = about(
        "refuse",
        "What becomes of problems whose gold answer does not grade itself correct: the run is refused, or they are "
        "left out.",
    )
    context: Literal["gold", "page", "retrieved", "none"] = about(
        "gold",
        "What FinQA's question comes with: the rows its annotators marked, the whole page, the rows that BM25 finds, "
        "or nothing.",
    )
    context_rows: int = about(5, "Rows that BM25 retrieves from the page.", unit="rows", ge=1, le=1000)
    operands_min: int = about(2, "Fewest numbers in one problem.", unit="numbers", ge=2, le=8)
    operands_max: int = about(4, "Most numbers in one problem.", unit="numbers", ge=2, le=8)
    largest_operand: int = about(20, "Largest number in a problem.", ge=2, le=999)
    operators: tuple[Operator, ...] = about(
        ("+", "-"), "Operators that may stand between numbers; * before + and -.", min_length=1
    )

    @model_validator(mode="before")
    @classmethod
    def _split_name(cls, given: Any) -> Any:
        name = given.get("name") if isinstance(given, dict) else None
        if not isinstance(name, str) or ":" not in name:
            return given
        task, _, value = name.partition(":")
        field = _FIELD_AFTER_COLON.get(task)
        if field is None:
            return given
        if given.get(field) not in (None, value):
            raise ValueError(f"name={name} and {field}={given[field]} say different things; keep one")
        return {**given, "name": task, field: value}


class PromptConfig(Section):
    """How a question is put to the model; the prompt brings its reward and its stop strings."""

    name: PromptName = about(
        "r1_zero",
        "`r1_zero` and `reasoning` ask for tags, `minimal` and `chat` for a boxed answer, `hash_line` for `####` "
        "before it, `answer_line` for `Answer:`, `number_only` for a number and nothing else, `question_only` for "
        "nothing (its reward reads a box); `custom` is `prompt.text`.",
    )
    text: str | None = about(None, "Prompt of your own, with one `{question}` in it, for `custom`.", min_length=1)
    reward: str | None = about(
        None,
        "Reward that reads the answer; `own:NAME` is NAME.py in the folder of rewards of your own. Empty takes the "
        "prompt's.",
        min_length=1,
    )
    stop_string: str | None = about(None, "Text that ends a completion of a `custom` prompt.", min_length=1)
