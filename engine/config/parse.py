"""From loose mappings (YAML, `--set`, the form) to a RunConfig, with every fault named at once."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import yaml
from pydantic import ValidationError

from engine.config.fields import fields
from engine.config.run_config import RunConfig
from engine.errors import ConfigError, FieldProblem


def parse_config(raw: Mapping[str, Any]) -> RunConfig:
    """Build a RunConfig from nested sections, dotted paths or the flat words of other programs.

    Raises:
        ConfigError: with one problem per faulty field.
    """
    tree = _without_idle_switches(nest(raw))
    try:
        return RunConfig.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(_problem(detail) for detail in error.errors()) from None


def nest(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return `raw` as nested sections under our own names.

    Raises:
        ConfigError: if a name is unknown, or one field is given twice with different values.
    """
    tree: dict[str, Any] = {}
    origin: dict[str, tuple[str, Any, Any]] = {}
    problems = []
    for given, stated in _flat(raw):
        path = canonical_path(given)
        value = _own_value(path, stated)
        if path is None:
            problems.append(FieldProblem(given, f"{given}={_show(stated)} is not a field; {_suggest(given)}"))
        elif path in origin and origin[path][1] != value:
            first, _, other = origin[path]
            problems.append(
                FieldProblem(path, f"{path} is given twice: {first}={_show(other)}, {given}={_show(stated)}; keep one")
            )
        else:
            origin[path] = (given, value, stated)
            section, _, key = path.rpartition(".")
            (tree.setdefault(section, {}) if section else tree)[key] = value
    if problems:
        raise ConfigError(problems)
    return tree


def canonical_path(name: str) -> str | None:
    """Return our dotted path for a field's path, its bare name, or another program's word for it."""
    return _paths_by_name().get(name)


def parse_assignment(text: str) -> tuple[str, Any]:
    """Split `path=value` (as given to `--set`); the value is read as YAML, so `1e-4` and `true` work.

    Raises:
        ConfigError: if there is no `=`.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise ConfigError([FieldProblem(name, f"--set {text} has no value; write --set {name}=VALUE")])
    return name.strip(), _scalar(value)


def to_yaml(config: RunConfig) -> str:
    """Return the whole config as YAML that `parse_config` reads back to an equal config."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested `base` with the nested values of `change` laid over it."""
    merged = dict(base)
    for key, value in change.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _flat(raw: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in raw.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        else:
            yield path, value


@cache
def _paths_by_name() -> dict[str, str]:
    """Every accepted name. A full path is always taken, then a word, then a bare name that only one section has."""
    keys: dict[str, list[str]] = {}
    words: dict[str, list[str]] = {}
    for field in fields():
        keys.setdefault(field.key, []).append(field.path)
        for word in field.words:
            words.setdefault(word, []).append(field.path)
            if field.section:
                words.setdefault(f"{field.section}.{word}", []).append(field.path)
    unambiguous = [{name: paths[0] for name, paths in names.items() if len(paths) == 1} for names in (keys, words)]
    return unambiguous[0] | unambiguous[1] | {field.path: field.path for field in fields()}


# CS336 switches the std on and off (`use_std_normalization`); TRL's `scale_rewards` has words of its own.
_OTHER_VALUES: Mapping[str, Mapping[str, str]] = {
    "grpo.scale": {"true": "group_std", "false": "none", "group": "group_std", "batch": "batch_std"},
    "truncation.completions": {"true": "mask", "false": "keep"},
    "kl.estimator": {"kl": "k1", "mse": "k2", "low_var_kl": "k3"},
}


# Where a bound is not the plain end of a scale, why it is there.
_REASONS: Mapping[str, str] = {
    "rollout.group_size": "; a group of one has nothing to compare its completion with: every advantage would be 0",
}


def _own_value(path: str | None, value: Any) -> Any:
    """Return our value for another program's value of the same field."""
    known = _OTHER_VALUES.get(path or "", {})
    return known.get(_show(value).lower(), value) if isinstance(value, bool | str) else value


def _without_idle_switches(tree: dict[str, Any]) -> dict[str, Any]:
    """CS336's `loss_type: no_baseline` ignores the baseline switches; so they default to off under it."""
    grpo = tree.get("grpo", {})
    if grpo.get("loss_type") != "no_baseline":
        return tree
    return {**tree, "grpo": {"baseline": "none", "scale": "none", **grpo}}


def _problem(detail: Any) -> FieldProblem:
    path = ".".join(str(part) for part in detail["loc"] if not isinstance(part, int))
    message = detail["msg"].removeprefix("Value error, ")
    rule = message[0].lower() + message[1:] + _REASONS.get(path, "")
    field = next((field for field in fields() if field.path == path), None)
    way_out = f" ({field.range_text})" if field and field.range_text else ""
    return FieldProblem(path, f"{path}={_show(detail['input'])}: {rule}{way_out}")


def _scalar(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text  # such as a prompt with a colon and a brace in it


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _suggest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, _paths_by_name(), n=2, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else "see docs/config.md for the fields"
