"""Suites: experiments as YAML, arms against a baseline arm, each a small difference to a preset."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, ValidationError

from engine.config import RunConfig, Section, merge, nest
from engine.errors import ConfigError, FieldProblem
from engine.presets import load_preset
from engine.presets.document import document_name, document_names, read_document

FOLDER = Path(__file__).with_name("suites")


@dataclass(frozen=True, slots=True)
class Arm:
    """Runs that differ in the seed alone: their name, the preset they start from, and the config they share."""

    name: str
    preset: str
    config: RunConfig

    def with_seed(self, seed: int) -> RunConfig:
        """Return the config of the run with this seed."""
        return self.config.model_copy(update={"seed": seed})


@dataclass(frozen=True, slots=True)
class Suite:
    """An experiment: its question, its arms, the name of the one the others are compared with, runs per arm."""

    name: str
    question: str
    baseline: str
    seeds: int
    arms: tuple[Arm, ...]


def suite_names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of all suites."""
    return document_names(folder)


def load_suite(name_or_path: str, overrides: Mapping[str, Any] | None = None, *, folder: Path = FOLDER) -> Suite:
    """Load a suite by name, or any YAML file by path, with `overrides` laid over every arm, last.

    Raises:
        ConfigError: if there is no such suite, its file or the config of an arm is not valid, two arms have equal
            configs, or the baseline is not an arm.
    """
    file = _read(name_or_path, folder)
    suite = Suite(
        name=document_name(name_or_path),
        question=file.question,
        baseline=file.baseline,
        seeds=file.seeds,
        arms=_arms(file, nest(overrides or {})),
    )
    problems = tuple(_problems(suite))
    if problems:
        raise ConfigError(problems)
    return suite


# A part of a run's name, which is <suite>/<arm>/seed-<n>.
_ArmName = Annotated[str, StringConstraints(pattern=r"^[\w.+-]+$")]


class _SuiteFile(Section):
    question: str = Field(min_length=1)
    base: str | None = None
    baseline: str
    seeds: int = Field(ge=1, strict=True)
    common: dict[str, Any] = Field(default_factory=dict)
    arms: dict[_ArmName, dict[str, Any]] = Field(min_length=1)


def _read(name_or_path: str, folder: Path) -> _SuiteFile:
    try:
        return _SuiteFile.model_validate(read_document("suite", name_or_path, folder))
    except ValidationError as error:
        raise ConfigError(_file_problem(detail) for detail in error.errors()) from None


def _file_problem(detail: Any) -> FieldProblem:
    path = ".".join(str(part) for part in detail["loc"] if part != "[key]")
    given, rule = f"{path}={detail['input']}", detail["msg"][0].lower() + detail["msg"][1:]
    keys = ", ".join(_SuiteFile.model_fields)
    if detail["loc"][-1] == "[key]":
        path = "arms"
        message = f"arms: {detail['input']} is no name; use letters, digits and . _ + -, and quote numbers, yes and no"
    elif detail["type"] == "missing":
        message = f"{path} is missing; a suite has {keys}, of which base and common may be left out"
    elif detail["type"] == "extra_forbidden":
        message = f"{given} is not a key of a suite; use one of {keys}"
    elif detail["type"] == "too_short":
        message = f"{path} has no arm; write one a line, such as clip: {{}}"
    else:
        message = f"{given}: {rule}"
    return FieldProblem(path, message)


def _arms(file: _SuiteFile, overrides: Mapping[str, Any]) -> tuple[Arm, ...]:
    arms: list[Arm] = []
    faulty: dict[FieldProblem, list[str]] = {}
    for name, tree in file.arms.items():
        try:
            arms.append(_arm(name, tree, file, overrides))
        except ConfigError as error:
            for problem in error.problems:
                faulty.setdefault(problem, []).append(name)
    if faulty:
        raise ConfigError(
            FieldProblem(problem.path, f"{problem.message} (arm {', '.join(names)})")
            for problem, names in faulty.items()
        )
    return tuple(arms)


def _arm(name: str, tree: Mapping[str, Any], file: _SuiteFile, overrides: Mapping[str, Any]) -> Arm:
    start = tree.get("extends", file.base)
    if start is None:
        message = "base is missing, and nothing else says what to start from; give a base, or the arm an extends"
        raise ConfigError([FieldProblem("base", message)])
    own = nest({key: value for key, value in tree.items() if key != "extends"})
    changes = merge(merge(nest(file.common), own), overrides)
    if "seed" in changes:
        message = f"seed={changes['seed']} is given, but every arm has the seeds 0, 1, 2, …; set their number (seeds)"
        raise ConfigError([FieldProblem("seed", message)])
    preset = load_preset(str(start), changes)
    return Arm(name=name, preset=preset.name, config=preset.config)


def _problems(suite: Suite) -> Iterator[FieldProblem]:
    names = [arm.name for arm in suite.arms]
    if suite.baseline not in names:
        message = f"baseline={suite.baseline} is not an arm; use one of {', '.join(names)}"
        yield FieldProblem("baseline", message)
    first: dict[str, str] = {}
    for arm in suite.arms:
        twin = first.setdefault(arm.config.arm_digest(), arm.name)
        if twin != arm.name:
            message = f"arms.{arm.name} has the same config as arms.{twin}; change a field of one, or leave it out"
            yield FieldProblem(f"arms.{arm.name}", message)
