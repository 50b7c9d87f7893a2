"""The file of results: what was measured last of each benchmark, with the commit and the day it was measured at."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.entry import LeftOut, Outcome

PATH = Path(__file__).parent / "results.json"


def read(path: Path = PATH) -> list[dict[str, Any]]:
    """Return the documents in the file, none where there is no file.

    Raises:
        ValueError: if the file is no list of documents that name their benchmark.
    """
    if not path.exists():
        return []
    documents = json.loads(path.read_text(encoding="utf-8"))
    if not (isinstance(documents, list) and all("benchmark" in document for document in documents)):
        raise ValueError(f"{path} is no list of results with the benchmark of each; delete it and measure again")
    return documents


def renewed(documents: Sequence[dict[str, Any]], benchmark: str, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return `documents` with those of `benchmark` replaced by `outcomes`; others stay as they are.

    They stay as well where nothing was measured this time.
    """
    if all(isinstance(outcome, LeftOut) for outcome in outcomes):
        return list(documents)
    kept = [document for document in documents if document["benchmark"] != benchmark]
    return kept + [{"benchmark": benchmark} | outcome.document() for outcome in outcomes]


def write(documents: Sequence[dict[str, Any]], path: Path = PATH) -> None:
    """Write the file as a whole, or leave it as it was."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(json.dumps(list(documents), indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)
