"""The names of reasoning-gym's generators as a JSON list: `python -m engine.tasks.generators`.

A process of its own for whoever wants the names alone: importing the package takes seconds and 70 MB.
"""

import json
import sys

from engine.errors import TaskError
from engine.tasks.reasoning_gym import generator_names


def main() -> int:
    """Print the names and return 0; 2 where the package is not installed."""
    try:
        print(json.dumps(generator_names()))
    except TaskError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
