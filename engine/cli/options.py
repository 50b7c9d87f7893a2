"""Arguments and options that several commands share."""

from typing import Annotated

import typer

RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="Id of the run, the beginning of one, or its name.", show_default=False)
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on standard output and nothing else there.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a field, as in optimizer.learning_rate=3e-4; repeat for more. "
        "Names of other programs (num_generations, n_grpo_steps, …) are understood.",
        show_default=False,
    ),
]
NameOption = Annotated[str | None, typer.Option("--name", help="Name of the run.", show_default=False)]
WaitOption = Annotated[bool, typer.Option("--wait", help="Wait for the end; without a worker, be one for these runs.")]
