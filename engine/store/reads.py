"""What pages and commands read. Every function is one short read and returns frozen records."""

from engine.store.read_evaluations import answer_counts, evaluation_answers, evaluation_problems, evaluations
from engine.store.read_groups import (
    completions,
    group,
    groups,
    prompt_token_ids,
    steps_with_groups,
    token_data,
)
from engine.store.read_metrics import last_metrics, metric_names, metrics
from engine.store.read_regrades import flips, flips_by_step, get_regrade, regrades
from engine.store.read_runs import attempts, checkpoints, children, events, find_run, get_run, list_runs
from engine.store.read_updates import update_metrics

__all__ = [
    "answer_counts",
    "attempts",
    "checkpoints",
    "children",
    "completions",
    "evaluation_answers",
    "evaluation_problems",
    "evaluations",
    "events",
    "find_run",
    "flips",
    "flips_by_step",
    "get_regrade",
    "get_run",
    "group",
    "groups",
    "last_metrics",
    "list_runs",
    "metric_names",
    "metrics",
    "prompt_token_ids",
    "regrades",
    "steps_with_groups",
    "token_data",
    "update_metrics",
]
