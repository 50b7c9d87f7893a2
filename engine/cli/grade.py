"""`grade`: the verdicts on a file of answers."""

import json as codec
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, get_args

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.cli.output import NOT_SUCCEEDED, output, plain
from engine.errors import GrpoLabError
from engine.rewards.grading import Answer, grade
from engine.rewards.judging import FORMATS
from engine.types import Verdict

AT_ONCE = 256  # lines
SLOWEST = 3  # lines shown
SHOWN = 60  # characters of an answer


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was read: its number, counted from 1, and its document, whole."""

    number: int
    document: dict[str, Any]

    @property
    def format(self) -> str:
        """The name of its format."""
        return str(self.document["format"])

    @property
    def pair(self) -> tuple[str, str]:
        """Completion and gold."""
        return self.document["response"], str(self.document["gold"])


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be graded, and why."""

    number: int
    reason: str


def grade_file(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON lines, or - for standard input.", show_default=False)
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print the lines with their verdicts as JSON lines and nothing else.")
    ] = False,
) -> None:
    """Grade answers: lines of {format, response, gold, …}; exit 1 if some lines could not be read.

    A format is gsm8k, boxed, answer_tag, plain or finqa. Each line is given back with verdict (correct, wrong,
    unreadable or not_graded), answer, reason and seconds.
    """
    with output(json) as out:
        bad = 0
        graded: list[tuple[Line, Answer]] = []
        with _opened(file) as source:
            for chunk in _chunks(read_lines(source)):
                lines = [line for line in chunk if isinstance(line, Line)]
                for line in chunk:
                    if isinstance(line, BadLine):
                        bad += 1
                        print(plain(f"line {line.number}: {line.reason}"), file=sys.stderr)
                answers = grade_lines(lines)
                if json:
                    _print_lines(lines, answers)
                else:
                    graded.extend(zip(lines, answers, strict=True))
        if not json:
            out.result(None, summary(graded, bad))
        if bad:
            raise typer.Exit(NOT_SUCCEEDED)


def read_lines(source: Iterable[bytes]) -> Iterator[Line | BadLine]:
    """Yield every line that is not blank, in order."""
    for number, raw in enumerate(source, 1):
        if raw.strip():
            try:
                yield Line(number, _document(raw))
            except ValueError as error:
                yield BadLine(number, str(error))
            except RecursionError:
                yield BadLine(number, "nested too deeply")


def grade_lines(lines: list[Line]) -> list[Answer]:
    """Return the answers of `lines` in their order."""
    found: dict[int, Answer] = {}
    for name, members in groupby(sorted(lines, key=lambda line: line.format), key=lambda line: line.format):
        same = list(members)
        answers = grade([line.pair for line in same], name)
        found |= {line.number: answer for line, answer in zip(same, answers, strict=True)}
    return [found[line.number] for line in lines]


def summary(graded: list[tuple[Line, Answer]], bad: int) -> RenderableType:
    """Return counts by format and verdict, and the answers that took longest."""
    verdicts: tuple[Verdict, ...] = get_args(Verdict)
    counts = Counter((line.format, answer.verdict) for line, answer in graded)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("format")
    for column in (*verdicts, "all"):
        table.add_column(column, justify="right", no_wrap=True)
    names = sorted({line.format for line, _ in graded})
    for name in names:
        row = [counts[name, verdict] for verdict in verdicts]
        table.add_row(name, *map(str, row), str(sum(row)))
    if len(names) != 1:
        row = [sum(counts[name, verdict] for name in names) for verdict in verdicts]
        table.add_row("all", *map(str, row), str(sum(row)), style="bold")
    shown: list[RenderableType] = [table]
    slowest = sorted(graded, key=lambda pair: -pair[1].seconds)[:SLOWEST]
    for line, answer in slowest:
        shown.append(Text(f"line {line.number}: {answer.seconds:.3f} s, {answer.verdict}, {_short(answer.text)}"))
    if slowest:
        shown.insert(1, Text("Slowest:", style="bold"))
    if bad:
        shown.append(Text(f"{bad} lines could not be read.", style="red"))
    return Group(*shown)


def _document(raw: bytes) -> dict[str, Any]:
    """Return the document of a line; raise ValueError with the fault where it is none that can be graded."""
    try:
        document = codec.loads(raw.decode(), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    except codec.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    if not isinstance(document, dict):
        raise ValueError(f"a JSON {type(document).__name__}; give an object with format, response and gold")
    missing = [name for name in ("format", "response", "gold") if document.get(name) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)}: missing; give an object with format, response and gold")
    if document["format"] not in list(FORMATS):
        raise ValueError(f"format: {document['format']!r} is not a format; choose one of {', '.join(FORMATS)}")
    if not isinstance(document["response"], str):
        raise ValueError(f"response: {document['response']!r} is no text; write it as a string")
    if isinstance(document["gold"], bool) or not isinstance(document["gold"], str | int | float):
        raise ValueError(f"gold: {document['gold']!r} is no answer; give a string or a number")
    return document


def _refuse(name: str) -> None:
    raise ValueError(f"not JSON: {name} is no JSON number")


def _opened(file: str) -> BinaryIO:
    if file == "-":
        return sys.stdin.buffer
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise GrpoLabError(f"FILE={file} cannot be read ({error.strerror}); name a file of JSON lines, or -") from None


def _chunks(lines: Iterator[Line | BadLine]) -> Iterator[list[Line | BadLine]]:
    while chunk := list(islice(lines, AT_ONCE)):
        yield chunk


def _print_lines(lines: list[Line], answers: list[Answer]) -> None:
    for line, answer in zip(lines, answers, strict=True):
        verdict = {"verdict": answer.verdict, "answer": answer.text, "reason": answer.reason}
        # ASCII: a lone surrogate in a completion is no text that could be printed
        print(codec.dumps(line.document | verdict | {"seconds": round(answer.seconds, 6)}, allow_nan=False))
    sys.stdout.flush()


def _short(text: str | None) -> str:
    if text is None:
        return "no answer"
    shown = plain(text.replace("\n", " "))
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"
