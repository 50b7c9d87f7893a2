"""`reward`: a person's own rewards listed, begun, and tried on completions that are stored."""

from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, get_args

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.cli.options import JsonOption
from engine.cli.output import NOT_SUCCEEDED, output, plain
from engine.errors import RewardError, StoreError
from engine.rewards import own_template
from engine.rewards.folder import OWN, own_names, own_path, rewards_folder
from engine.rewards.own import read_own
from engine.rewards.trial import Item, Trial, try_reward
from engine.rewards.verifiers import REWARDS
from engine.store import reads
from engine.store.database import Database, open_database
from engine.types import Problem, Verdict

reward = typer.Typer(help="List rewards, begin one of your own, and try it on stored completions.")
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of your reward, with or without own:.", show_default=False)
]


@reward.command("list")
def list_rewards(json: JsonOption = False) -> None:
    """List the rewards that prompt.reward may name."""
    with output(json) as out:
        folder = rewards_folder()
        own = [read_own(name, folder) for name in own_names(folder)]
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("prompt.reward", "where", "sha256"):
            table.add_column(column, overflow="fold")
        for name in sorted(REWARDS):
            table.add_row(name, "built in", "")
        for each in own:
            table.add_row(f"{OWN}{each.name}", Text(plain(str(each.path))), each.digest[:12])
        none = [] if own else [Text(plain(f"None of your own in {folder}; begin one: grpo-lab reward new NAME"))]
        document = {
            "folder": str(folder),
            "built_in": sorted(REWARDS),
            "own": [{"reward": OWN + each.name, "path": str(each.path), "sha256": each.digest} for each in own],
        }
        out.result(document, Group(table, *none))


@reward.command("new")
def new_reward(name: NameArgument, json: JsonOption = False) -> None:
    """Write a template with comments into the folder of rewards; a file that is there is left as it is."""
    with output(json) as out:
        path = own_path(name.removeprefix(OWN), rewards_folder())
        _write_new(path)
        shown = f"Wrote {path}. Next: grpo-lab reward test {path.stem}"
        out.result({"reward": OWN + path.stem, "path": str(path)}, Text(plain(shown)))


@reward.command("test")
def try_stored(
    name: NameArgument,
    run: Annotated[
        str | None,
        typer.Option("--run", metavar="RUN", help="Run whose completions are judged; else the newest that has any."),
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="Most completions, the newest first.")] = 64,
    json: JsonOption = False,
) -> None:
    """Run a reward of your own over stored completions; exit 1 if any could not be judged."""
    with output(json) as out:
        own = read_own(name.removeprefix(OWN), rewards_folder())
        db = open_database()
        run_id, items = _completions(db, run, n)
        trial = try_reward(own, items)
        facts = {"reward": OWN + own.name, "sha256": own.digest, "run": run_id}
        out.result(facts | _document(trial), _shown(facts, trial))
        if trial.errors:
            raise typer.Exit(NOT_SUCCEEDED)


def _write_new(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(Path(own_template.__file__).read_text(encoding="utf-8"))
    except FileExistsError:
        raise RewardError(f"reward={OWN}{path.stem}: {path} is there already; choose another name or edit it") from None
    except OSError as error:
        raise RewardError(f"reward={OWN}{path.stem}: {path} cannot be written ({error.strerror})") from None


def _completions(db: Database, wanted: str | None, n: int) -> tuple[str, list[Item]]:
    """Return a run and at most `n` of its completions, those of its last steps."""
    runs = reads.list_runs(db) if wanted is None else [reads.find_run(db, wanted)]
    for run in runs:
        items: list[Item] = []
        for step in reversed(reads.steps_with_groups(db, run.run_id)):
            for group in reads.groups(db, run.run_id, step):
                problem = Problem(group.problem_id, group.question, group.gold)
                items += [(each.text, group.gold, problem) for each in reads.completions(db, group.group_id)]
            if len(items) >= n:
                break
        if items:
            return run.run_id, items[:n]
    which = "no run has" if wanted is None else f"run={wanted} has no"
    raise StoreError(f"{which} stored completions; train one with logging.completions=true, or name another with --run")


def _document(trial: Trial) -> dict[str, Any]:
    values, verdicts = trial.values, Counter(reward.verdict for reward in trial.rewards)
    return {
        "n": len(trial.rewards),
        "verdicts": {verdict: verdicts[verdict] for verdict in get_args(Verdict)},
        "values": {"min": min(values), "mean": fmean(values), "max": max(values)} if values else None,
        "seconds": {"total": trial.total_seconds, "slowest": max(trial.seconds)},
        "errors": [{"reason": reason, "n": count} for reason, count in trial.errors],
    }


def _shown(facts: dict[str, Any], trial: Trial) -> RenderableType:
    found = _document(trial)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in found["verdicts"].items())
    lines = [
        Text(plain(f"{facts['reward']} on {found['n']} completions of run {facts['run']}"), style="bold"),
        Text(f"verdicts  {verdicts}"),
        Text(
            "values    "
            + ("none" if not found["values"] else ", ".join(f"{key} {each:g}" for key, each in found["values"].items()))
        ),
        Text(f"seconds   {trial.total_seconds:.2f} in all, slowest completion {max(trial.seconds):.3f}"),
    ]
    lines += [Text(plain(f"{count} × {reason}"), style="red") for reason, count in trial.errors]
    return Group(*lines)
