"""`preview`: what a run would be asked, before it is launched."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.cli.manage import parse_changes
from engine.cli.options import JsonOption, SetOption
from engine.cli.output import REFUSED, output, plain
from engine.presets import load_preset
from engine.tasks.run_preview import AskedPrompt, GoldCheck, RunPreview, gold_words

SHOWN = 10  # faulty gold answers
STAGES = {
    "data": "reading the data",
    "tokenizer": "loading the tokenizer",
    "gold": "checking the gold answers",
}


def preview(
    preset: Annotated[str, typer.Argument(help="Name of a preset, or the path of a .yaml file.", show_default=False)],
    set_: SetOption = None,
    n: Annotated[int, typer.Option("--n", min=1, max=1000, help="Prompts shown.")] = 5,
    json: JsonOption = False,
) -> None:
    """Show the first prompts of a run with their tokens, and what is found in its data; nothing is launched.

    Exit 2 if the run could not begin: an error, or gold answers that do not grade themselves correct.
    """
    from engine.jobs.preview import preview_config

    with output(json) as out:
        config = load_preset(preset, parse_changes(set_)).config
        known, stage = RunPreview(), ""
        for known in preview_config(config, n):
            if known.stage != stage and known.stage in STAGES:
                stage = known.stage
                out.note(f"{STAGES[stage]} …")
        out.result(asdict(known), shown(known))
        if known.error or (known.gold and known.gold.refuses):
            raise typer.Exit(REFUSED)


def shown(known: RunPreview) -> RenderableType:
    """Return the preview as it is shown in a terminal."""
    parts: list[RenderableType] = [Text(plain(sentence)) for sentence in known.sentences]
    if known.reward:
        stops = f"; {' or '.join(known.stop_strings)} ends it" if known.stop_strings else ""
        parts.append(Text(plain(f"Read by the reward {known.reward}{stops}.")))
    for number, row in enumerate(known.rows, 1):
        parts += _prompt(number, row)
    if known.gold:
        parts.append(Text(gold_words(known.gold), style="red" if known.gold.refuses else ""))
        if known.gold.first:
            parts.append(_faults(known.gold))
    if known.error:
        parts.append(Text(plain(known.error), style="red"))
    return Group(*parts)


def _prompt(number: int, row: AskedPrompt) -> list[RenderableType]:
    length = "" if row.tokens is None else f", {len(row.tokens)} tokens"
    head = Text(plain(f"#{number} {row.problem_id} ({row.split}{length})"), style="bold")
    lines = "\n".join(plain(line) for line in row.prompt.split("\n"))
    return [Text(""), head, Text(lines), Text(plain(f"Gold: {row.gold}"), style="green")]


def _faults(gold: GoldCheck) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("problem", "gold", "why"):
        table.add_column(column)
    for fault in gold.first[:SHOWN]:
        table.add_row(plain(fault.problem_id), plain(fault.gold[-60:]), plain(fault.reason))
    return table
