"""TRL in an environment of its own, with the versions pinned here: the product does not depend on it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TRL = "trl==1.16.0"


def default_folder() -> Path:
    """Return where the environment is kept unless told: under the user's cache folder."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(os.environ.get("GRPO_LAB_TRL_ENVIRONMENT", caches / "grpo-lab" / TRL.replace("==", "-")))


def python_of(folder: Path) -> Path:
    """Return the Python of the environment in `folder`, made on first use."""
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        print(f"Installing {TRL} into {folder} (once; some minutes)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        pinned = ["-c", str(ROOT / "constraints.txt")]
        packages = ["torch", "transformers", "array-api-compat", TRL]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pinned, *packages]
        subprocess.run(install, check=True)
        ready.touch()
    return python
