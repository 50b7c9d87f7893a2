"""TRL in an environment of its own, with the versions pinned here: the product does not depend on it."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.entry import ROOT, MissingPeerError, say

TRL = "trl==1.16.0"


def default_folder() -> Path:
    """Return where the environment is kept unless told: under the user's cache folder."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(os.environ.get("GRPO_LAB_TRL_ENVIRONMENT", caches / "grpo-lab" / TRL.replace("==", "-")))


def python_of(folder: Path) -> Path:
    """Return the Python of the environment in `folder`, made on first use.

    Raises:
        MissingPeerError: if it cannot be made, as without a network.
    """
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        say(f"Installing {TRL} into {folder} (once; some minutes)")
        pinned = ["-c", str(ROOT / "constraints.txt")]
        packages = ["torch", "transformers", "array-api-compat", TRL]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pinned, *packages]
        try:
            # What they print is no part of the one JSON document that a benchmark prints.
            for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
                subprocess.run(command, check=True, stdout=sys.stderr)
        except (OSError, subprocess.CalledProcessError) as error:
            raise MissingPeerError(
                f"{TRL} cannot be installed into {folder} ({error}); it needs a network and 2 GB, once"
            ) from error
        ready.touch()
    return python
