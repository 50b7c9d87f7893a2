"""The process of a preview: `python -m engine.jobs.preview [--n N]`, a config as JSON on one line of standard input.

Writes a line of JSON whenever more is known (engine.tasks.run_preview), the last with the stage "done". With
`--attended` it ends as soon as its standard input is closed, so that it does not outlive whoever asked for it.
"""

import argparse
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence

from engine.config import RunConfig, parse_config
from engine.errors import GrpoLabError
from engine.tasks.run_preview import RunPreview, to_json

LEFT_ALONE = 3
"""The exit code where nobody waited for the preview any more."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the preview and return 0; an error that would stop the run is part of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--n", type=int, default=5, help="prompts (default: %(default)s)")
    parser.add_argument("--attended", action="store_true", help="end when standard input is closed")
    given = parser.parse_args(arguments)
    line = sys.stdin.readline()
    if given.attended:
        threading.Thread(target=_end_with_input, daemon=True).start()
    for known in preview_lines(line, given.n):
        print(to_json(known), flush=True)
    return 0


def preview_lines(line: str, n: int) -> Iterator[RunPreview]:
    """Yield the states of the preview of a config in JSON."""
    try:
        config = parse_config(json.loads(line))
    except GrpoLabError as error:
        yield RunPreview(stage="done", error=str(error))
        return
    yield from preview_config(config, n)


def preview_config(config: RunConfig, n: int) -> Iterator[RunPreview]:
    """Yield the states of the preview of a config; the store is opened only where `model.init_from` names a run."""
    yield RunPreview()
    from engine.jobs.start_point import find_initial_weights
    from engine.store.database import open_database
    from engine.training.preview import preview_run

    weights = None
    if config.model.init_from is not None:
        try:
            weights = find_initial_weights(open_database(), config)
        except GrpoLabError as error:
            yield RunPreview(stage="done", error=str(error))
            return
    yield from preview_run(config, n, initial_weights=weights)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(LEFT_ALONE)


if __name__ == "__main__":
    sys.exit(main())
