"""The tables of the docs that are made from the code: `python -m engine.reference` writes them.

A test keeps `docs/config.md` and `docs/metrics.md` equal to what this module returns.
"""

from pathlib import Path
from typing import Any

from engine.config import fields
from engine.config.run_config import RunConfig
from engine.config.sections import Section
from engine.metrics import METRICS

DOCS = Path(__file__).parent.parent / "docs"


def config_page() -> str:
    """Return docs/config.md: every field with default, range, sentence and the other names it is read under."""
    lines = [
        "# Config",
        "",
        "One `RunConfig` says everything about a run. This page is made from it by `python -m engine.reference`.",
        "",
        "A field is named by its path (`rollout.group_size`), by its bare name where only one section has it",
        "(`group_size`), or by a word of another program from the last column. `--set` and YAML read all three.",
    ]
    for section in dict.fromkeys(field.section for field in fields()):
        lines += ["", f"## {section or 'Top level'}", ""]
        lines += [_section_sentence(section), ""] if section else []
        lines += ["| field | default | range | what it is | also read as |", "|---|---|---|---|---|"]
        for field in (field for field in fields() if field.section == section):
            words = ", ".join(f"`{word}`" for word in field.words)
            lines.append(
                f"| `{field.path}` | {_value(field.default)} | {field.range_text or '–'} | {field.sentence} | {words} |"
            )
    return "\n".join(lines) + "\n"


def metrics_page() -> str:
    """Return docs/metrics.md: every metric with title, unit and definition."""
    lines = [
        "# Metrics",
        "",
        "What a run logs, under the name it is stored as; names are TRL's where TRL has one. A share is 0 to 1.",
        "Training metrics of step k belong to the batch of that step; an evaluation at step k is of the policy after",
        "k steps, step 0 being the start policy. Evaluation and checkpoint times are those since the previous step.",
        "`<split>` is `validation` or `test`; `<k>` is a number of answers, 2, 4, 8, … and `evaluation.samples`:",
        "[evaluation.md](evaluation.md) has the formulas.",
        "This page is made from `engine/metrics.py` by `python -m engine.reference`.",
        "",
        "| name | title | unit | definition |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{m.name}` | {m.title} | {m.unit or '–'} | {m.sentence} |" for m in METRICS.values()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write both pages."""
    (DOCS / "config.md").write_text(config_page(), encoding="utf-8")
    (DOCS / "metrics.md").write_text(metrics_page(), encoding="utf-8")


def _section_sentence(section: str) -> str:
    annotation = RunConfig.model_fields[section].annotation
    assert isinstance(annotation, type)
    assert issubclass(annotation, Section)
    return (annotation.__doc__ or "").strip()


def _value(default: Any) -> str:
    if default is None:
        return "empty"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, tuple):
        return f"`[{', '.join(map(str, default))}]`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


if __name__ == "__main__":
    main()
