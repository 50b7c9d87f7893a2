"""One measured claim, and how it is shown."""

import argparse
import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version

import psutil


def machine() -> str:
    """Return the machine in one line."""
    return f"{platform.machine()}, {psutil.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB"


def versions() -> dict[str, str]:
    """Return the versions that a measurement depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("torch", "transformers", "numpy")}


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

    @property
    def ratio(self) -> float:
        """Ours divided by the other."""
        return self.ours / self.other

    def document(self) -> dict[str, object]:
        """Return the entry as a JSON tree."""
        return asdict(self) | {"ratio": self.ratio}


def print_table(entries: Sequence[Entry]) -> None:
    """Print one line per entry."""
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        print(
            f"{entry.name:<{width}}  {entry.ours:>10.4g} {entry.unit:<12} "
            f"{entry.other:>10.4g} ({entry.other_name})  ratio {entry.ratio:.3g}  n={entry.n}"
        )


def run_alone(measure: Callable[[], list[Entry]]) -> None:
    """Run one benchmark from the command line; `--json` prints one JSON document."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    as_json = parser.parse_args().json
    entries = measure()
    if as_json:
        print(json.dumps([entry.document() for entry in entries], indent=1))
    else:
        print_table(entries)
