"""The generators of reasoning-gym that are installed here, asked for once in a process of its own."""

import json
import os
import subprocess
import sys

import streamlit as st

from engine.places import python_path

PATIENCE = 60.0  # seconds


@st.cache_resource(show_spinner="Asking reasoning-gym for its generators")
def generators() -> tuple[str, ...]:
    """Return their names, sorted; none where the package is missing or does not answer."""
    try:
        asked = subprocess.run(
            [sys.executable, "-m", "engine.tasks.generators"],
            capture_output=True,
            timeout=PATIENCE,
            check=True,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    return tuple(json.loads(asked.stdout))
