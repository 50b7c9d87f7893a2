"""What a run will be asked: its data, prompts and tokens, made ready as `set_up` does it, without the weights."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.config import RunConfig
from engine.errors import GrpoLabError
from engine.rewards.choice import reward_named
from engine.rewards.gold import GoldFault, find_gold_faults, problems_to_check, without_faults
from engine.rewards.verifiers import Verifier
from engine.tasks.preview import PreviewRow, preview_of
from engine.tasks.prompts import PromptTemplate, prompt_of
from engine.tasks.run_preview import AskedPrompt, FaultyGold, GoldCheck, RunPreview, Token
from engine.tasks.task import Finite, Task, load_task

FAULTS_SHOWN = 200


def preview_run(config: RunConfig, n: int = 5, *, initial_weights: Path | None = None) -> Iterator[RunPreview]:
    """Yield what is known so far of the first `n` prompts and of the data, the last time with the stage "done".

    An error that would stop the run ends the preview as its `error`; what was known before stays. `initial_weights` is
    the folder that `model.init_from` names.
    """
    known = RunPreview()
    try:
        for known in _stages(config, n, initial_weights):
            yield known
    except GrpoLabError as error:
        yield replace(known, stage="done", error=str(error))


def _stages(config: RunConfig, n: int, initial_weights: Path | None) -> Iterator[RunPreview]:
    known = RunPreview()
    yield known
    prompt = prompt_of(config)
    task = load_task(config.task)
    leaves_out = without_faults(task, config, []) is not None
    if leaves_out:
        # What is left out changes which problems come first.
        known = replace(known, stage="gold")
        yield known
        gold, task = _check_gold(task, config, prompt)
        known = replace(known, gold=gold)
    found = preview_of(task, config, n)
    known = replace(
        known,
        stage="tokenizer",
        sentences=found.sentences,
        rows=tuple(AskedPrompt(row.problem_id, row.split, row.question, row.gold, row.prompt) for row in found.rows),
        reward=found.reward,
        stop_strings=found.stop_strings,
    )
    yield known
    # Behind the data, which is there in a second: torch and transformers take several to import.
    from engine.policy.policy import load_tokenizer_of

    tokenizer = load_tokenizer_of(config.model.name if initial_weights is None else str(initial_weights))
    put = prompt.in_chat(tokenizer)
    known = replace(known, stage="gold", rows=tuple(_asked(row, put, tokenizer) for row in found.rows))
    yield known
    if not leaves_out:
        gold, _ = _check_gold(task, config, prompt)
        known = replace(known, gold=gold)
    yield replace(known, stage="done")


def _asked(row: PreviewRow, prompt: PromptTemplate, tokenizer: Any) -> AskedPrompt:
    from engine.policy.policy import encode_prompt

    token_ids = encode_prompt(tokenizer, prompt.render(row.question))
    special = set(tokenizer.all_special_ids)
    return AskedPrompt(
        problem_id=row.problem_id,
        split=row.split,
        question=row.question,
        gold=row.gold,
        prompt=_decoded(tokenizer, token_ids),
        tokens=tuple(Token(each, _token_text(tokenizer, each), each in special) for each in token_ids),
        question_length=len(tokenizer(row.question, add_special_tokens=False).input_ids),
        gold_length=len(tokenizer(row.gold, add_special_tokens=False).input_ids),
    )


def _token_text(tokenizer: Any, token_id: int) -> str:
    """The text of one token; where it is but a part of a character, the token's name in the vocabulary."""
    text = _decoded(tokenizer, [token_id])
    return str(tokenizer.convert_ids_to_tokens(token_id)) if "\ufffd" in text or not text else text


def _decoded(tokenizer: Any, token_ids: Any) -> str:
    text: str = tokenizer.decode(token_ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return text


def _check_gold(task: Task, config: RunConfig, prompt: PromptTemplate) -> tuple[GoldCheck, Task]:
    """Look at the gold answers as the run will; return what was found, and the task that is left."""
    reward, whole = reward_named(prompt.reward), isinstance(task, Finite)
    if not isinstance(reward, Verifier):
        return GoldCheck(None, whole), task
    problems = problems_to_check(task, config)
    faults = find_gold_faults(problems, reward)
    left = without_faults(task, config, faults)
    first = tuple(_fault(fault) for fault in faults[:FAULTS_SHOWN])
    return GoldCheck(len(problems), whole, len(faults), left is not None, first), left or task


def _fault(fault: GoldFault) -> FaultyGold:
    problem = fault.problem
    return FaultyGold(problem.problem_id, problem.split, problem.gold, fault.reason)
