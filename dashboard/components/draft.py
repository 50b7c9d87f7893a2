"""A run being put together: what was chosen and typed, and what it comes to."""

import json
import shlex
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from dashboard.components.entry import Entry, entry_of, number_text, read_entry
from engine.config import (
    Field,
    RunConfig,
    diff,
    evaluation_config,
    evaluation_problems,
    fields,
    fork_problems,
    leaves,
    nest,
    parse_assignment,
    parse_config,
)
from engine.errors import ConfigError, FieldProblem
from engine.presets import load_preset

MOST_SEEDS = 20


@dataclass(frozen=True)
class Draft:
    """The form's contents. `base` is what the form was filled from; `parent` the (run id, step) of a fork.

    `evaluates` is the (run id, step) of the checkpoint that a run without steps evaluates; either has a `parent_name`.

    `token` belongs to one launch: the store queues what carries it once, however often it is sent.
    """

    base: RunConfig
    entries: dict[str, Entry]
    name: str
    preset: str | None = None
    sentence: str = ""
    parent: tuple[str, int] | None = None
    evaluates: tuple[str, int] | None = None
    parent_name: str = ""
    seeds: str = "1"
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def source(self) -> str:
        """The name of what the form was filled from."""
        return self.parent_name if self.parent or self.evaluates else str(self.preset)

    @property
    def trains(self) -> bool:
        """Whether what the form was filled from has steps."""
        return self.base.total_steps > 0

    @cached_property
    def checked(self) -> "Checked":
        """What the entries come to."""
        return _check(self)


@dataclass(frozen=True)
class Checked:
    """A config, or the reasons why there is none. `problems` is in the order of the form."""

    config: RunConfig | None
    n_seeds: int
    problems: tuple[FieldProblem, ...]

    def at(self, path: str) -> tuple[str, ...]:
        """Return the messages that belong under one field."""
        return tuple(problem.message for problem in self.problems if problem.path == path)


def draft_from_preset(name: str) -> Draft:
    """Open the form with a preset."""
    preset = load_preset(name)
    entries = _entries(preset.config)
    return Draft(base=preset.config, entries=entries, name=name, preset=name, sentence=preset.sentence)


def draft_from_run(config: RunConfig, run_id: str, step: int, name: str, preset: str | None) -> Draft:
    """Open the form with the config of a run that is to be forked after `step` steps."""
    return Draft(
        base=config,
        entries=_entries(config),
        name=f"{name}@{step}",
        preset=preset,
        parent=(run_id, step),
        parent_name=name,
    )


def draft_to_evaluate(config: RunConfig, run_id: str, step: int, name: str) -> Draft:
    """Open the form with a run that evaluates the checkpoint which the run with `config` has at `step`."""
    base = evaluation_config(config, run_id, step)
    return Draft(
        base=base, entries=_entries(base), name=f"{name}@{step}-eval", evaluates=(run_id, step), parent_name=name
    )


def with_entry(draft: Draft, path: str, entry: Entry) -> Draft:
    """Return the draft with one field changed."""
    return replace(draft, entries={**draft.entries, path: entry})


def with_new_token(draft: Draft) -> Draft:
    """Return the draft ready for another launch."""
    return replace(draft, token=uuid.uuid4().hex)


def differences(draft: Draft) -> dict[str, tuple[Any, Any]]:
    """Return what differs from the preset or the forked run: path → (there, here); nothing while it is not valid."""
    config = draft.checked.config
    return diff(draft.base, config) if config else {}


def command(draft: Draft) -> str:
    """Return what to type to launch the same runs, one option a line; nothing while there is no config.

    `--seeds` counts up from seed 0 and belongs to `launch`; other seeds take a command each.
    """
    if draft.checked.config is None:
        return ""
    counts_up = draft.parent is None and draft.evaluates is None and draft.checked.config.seed == 0
    if draft.checked.n_seeds > 1 and counts_up:
        changes = {path: value for path, (_, value) in differences(draft).items() if path != "seed"}
        return _command(draft, changes, draft.name.strip(), ["--seeds", str(draft.checked.n_seeds)])
    return "\n".join(
        _command(draft, {path: value for path, (_, value) in diff(draft.base, config).items()}, name)
        for name, config in seeded(draft)
    )


def seeded(draft: Draft) -> list[tuple[str, RunConfig]]:
    """Return (name, config) of each run to launch: one per seed, counting up from the seed in the form."""
    config, n_seeds = draft.checked.config, draft.checked.n_seeds
    if config is None:
        return []
    seeds = range(config.seed, config.seed + n_seeds)
    name = draft.name.strip()
    return [(f"{name}-seed-{seed}" if n_seeds > 1 else name, _with_seed(config, seed)) for seed in seeds]


def _command(draft: Draft, changes: dict[str, Any], name: str, more: list[str] | None = None) -> str:
    if draft.parent:
        verb, usual_name = ["fork", f"{draft.parent[0]}@{draft.parent[1]}"], f"{draft.parent_name}@{draft.parent[1]}"
    elif draft.evaluates:
        run_id, step = draft.evaluates
        verb, usual_name = ["evaluate", f"{run_id}@{step}"], f"{draft.parent_name}@{step}-eval"
    else:
        verb, usual_name = ["launch", str(draft.preset)], str(draft.preset)
    options = [["--set", f"{path}={_assignable(value)}"] for path, value in changes.items()]
    options += [more] if more else []
    options += [["--name", name]] if name != usual_name else []
    return " \\\n  ".join(shlex.join(words) for words in [["grpo-lab", *verb], *options])


def _entries(config: RunConfig) -> dict[str, Entry]:
    values = dict(leaves(config))
    return {each.path: entry_of(each, values[each.path]) for each in fields()}


def _check(draft: Draft) -> Checked:
    read = {each.path: read_entry(each, draft.entries[each.path]) for each in fields()}
    problems = [value for value in read.values() if isinstance(value, FieldProblem)]
    config = None
    if not problems:
        try:
            config = parse_config(nest(read))
        except ConfigError as error:
            problems = list(error.problems)
    n_seeds, seed_problems = _read_seeds(draft.seeds)
    others = (*_name_problems(draft), *seed_problems, *_fork_problems(draft, read))
    problems = sorted((*others, *problems), key=lambda problem: _ORDER.get(problem.path, -1))
    return Checked(None if problems else config, n_seeds, tuple(problems))


def _read_seeds(text: str) -> tuple[int, tuple[FieldProblem, ...]]:
    if text.strip().isdecimal() and 1 <= int(text) <= MOST_SEEDS:
        return int(text), ()
    message = f"seeds={text or '(empty)'} is not a number of runs; write it as 3 (1 to {MOST_SEEDS})"
    return 1, (FieldProblem("seeds", message),)


def _name_problems(draft: Draft) -> tuple[FieldProblem, ...]:
    if draft.name.strip():
        return ()
    return (FieldProblem("name", f"name is empty; give the run a name, such as {draft.preset or 'my run'}"),)


def _fork_problems(draft: Draft, read: dict[str, Any]) -> Iterator[FieldProblem]:
    if draft.parent is not None:
        yield from fork_problems(dict(leaves(draft.base)), read, step=draft.parent[1])
    if draft.evaluates is not None:
        yield from evaluation_problems(read["sft.steps"], read["grpo.steps"])


def _with_seed(config: RunConfig, seed: int) -> RunConfig:
    return parse_config({**config.model_dump(), "seed": seed})


def _assignable(value: Any) -> str:
    """A value as `--set` reads it back."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(value)
    if isinstance(value, str) and parse_assignment(f"x={value}")[1] == value:
        return value
    return json.dumps(value, ensure_ascii=False)


_ORDER: dict[str, int] = {each.path: number for number, each in enumerate(fields())}


def field_at(path: str) -> Field:
    """Return the field with this dotted path."""
    return fields()[_ORDER[path]]
