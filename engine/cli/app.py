"""The commands under their names."""

import typer

from engine.cli.doctor import doctor
from engine.cli.evaluate import evaluate
from engine.cli.grade import grade_file
from engine.cli.inspect import ls, show
from engine.cli.manage import archive, fork, launch, resume, stop
from engine.cli.preview import preview
from engine.cli.regrade import regrade
from engine.cli.reward import reward
from engine.cli.suite import suite

app = typer.Typer(
    name="grpo-lab",
    help="Launch GRPO runs, look at them, evaluate, stop, resume and fork them. Exit code 0: all went well, "
    "1: a run that was waited for did not succeed, 2: the request was refused, 130: Ctrl-C.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (launch, preview, suite, evaluate, ls, show, stop, resume, fork, archive, regrade, doctor):
    app.command()(command)
app.command("grade")(grade_file)
app.add_typer(reward, name="reward", no_args_is_help=True)
