"""What commands say, and to whom: results to standard output, all else to standard error."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from rich.console import Console, RenderableType
from rich.text import Text
from sqlalchemy.exc import DBAPIError

from engine.cli.summary import finite
from engine.errors import ConfigError, GrpoLabError

NOT_SUCCEEDED, REFUSED, INTERRUPTED = 1, 2, 130


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command's words go; with `as_json` standard output gets the one document and nothing else."""

    as_json: bool

    def result(self, document: Any, shown: RenderableType) -> None:
        """Give the result: as JSON, or as it is shown to a person."""
        if self.as_json:
            print_json(document)
        else:
            Console().print(shown)

    def note(self, line: str) -> None:
        """Say something by the way."""
        Console(stderr=True, highlight=False).print(Text(plain(line)))


@contextmanager
def output(as_json: bool) -> Iterator[Output]:
    """Yield the output of a command, and turn errors a person can act on into words and exit code 2."""
    try:
        yield Output(as_json)
    except (GrpoLabError, DBAPIError) as error:
        message = f"the store did not answer: {error.orig}" if isinstance(error, DBAPIError) else str(error)
        problems = error.problems if isinstance(error, ConfigError) else ()
        if as_json:
            listed = [{"path": problem.path, "message": problem.message} for problem in problems]
            print_json({"error": message, "problems": listed})
        for line in message.splitlines():
            print(plain(line), file=sys.stderr)
        raise typer.Exit(REFUSED) from None


def print_json(document: Any) -> None:
    """Print one valid JSON document."""
    print(json.dumps(finite(document), indent=2, ensure_ascii=False, allow_nan=False))


def plain(text: str) -> str:
    """Return text without the control characters that would steer a terminal: names are data."""
    return "".join(sign if sign.isprintable() or sign == "\t" else "�" for sign in text)
