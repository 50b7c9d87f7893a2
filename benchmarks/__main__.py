"""Run benchmarks, print one table and write benchmarks/results.json.

Each runs in a process of its own, `python -m benchmarks.NAME --json`, one after the other. What cannot run here, or
failed, is said in the table with its reason. Results of benchmarks that are not run again stay in the file, with the
commit and the day they were measured at. Exits 1 where one failed; what is missing on this machine is no failure.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.entry import ROOT, LeftOut, Outcome, from_document, print_table, say

NAMES = ("rollout", "store", "pages", "grading", "log_prob_memory", "floor", "step_time", "whole_run")


def main(arguments: Sequence[str] | None = None, *, path: Path = results.PATH) -> int:
    """Run what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all of them unless given")
    parser.add_argument("--repetitions", type=int, help="in place of the number that each benchmark has by itself")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - set(NAMES)
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: no such benchmark; choose from {', '.join(NAMES)}")
    names = given.names or NAMES
    options = [] if given.repetitions is None else ["--repetitions", str(given.repetitions)]
    documents = results.read(path)
    found: list[Outcome] = []
    for place, name in enumerate(names, 1):
        say(f"[{place}/{len(names)}] {name}, load {os.getloadavg()[0]:.1f}")
        began = time.monotonic()
        outcomes = run_one(f"benchmarks.{name}", options)
        say(f"[{place}/{len(names)}] {name} took {time.monotonic() - began:.0f} s")
        # After each, so that what is measured outlives an interruption.
        documents = results.renewed(documents, name, outcomes)
        results.write(documents, path)
        found += outcomes
    print_table(found)
    print(f"written to {path}")
    return 1 if any(isinstance(outcome, LeftOut) and outcome.failed for outcome in found) else 0


def run_one(module: str, options: Sequence[str] = ()) -> list[Outcome]:
    """Return what a benchmark measured in a process of its own; its failure as one gap, with the last line it said."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *_inherited_path()])}
    last = ""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        words = [sys.executable, "-m", module, "--json", *options]
        with subprocess.Popen(words, stdout=output, stderr=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stderr is not None
            for line in process.stderr:
                sys.stderr.write(line)
                last = line.strip() or last
        status = process.returncode
        output.seek(0)
        written = output.read()
    if status:
        return [LeftOut(module.removeprefix("benchmarks."), f"ended with status {status}: {last}", failed=True)]
    return [from_document(document) for document in json.loads(written)]


def _inherited_path() -> list[str]:
    return [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]


if __name__ == "__main__":
    sys.exit(main())
