"""Previews of runs, worked out by processes of their own: tokenizers have no place in the web process.

A process goes when it is done, has taken too long, is cancelled, or nobody has asked for it for a while: a page that is
closed says no goodbye. It also ends by itself when the web process does.
"""

import contextlib
import hashlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard.data.local_data import file_states
from engine.config import RunConfig
from engine.places import python_path
from engine.tasks.run_preview import RunPreview, from_json

PROMPTS = 5
LIMIT = 300.0  # seconds
UNWANTED = 15.0  # seconds without being asked for
KEPT = 16
COMMAND = (sys.executable, "-m", "engine.jobs.preview", "--attended", "--n", str(PROMPTS))
_LOOK = 0.5  # seconds between two looks at the clock
_SAID = 4_000  # characters kept of what a process says that fails


class PreviewJob:
    """One preview under way or done. `latest` is what is known so far; `trouble` why it ended before it was done."""

    def __init__(
        self, config: RunConfig, *, command: Sequence[str] = COMMAND, limit: float = LIMIT, unwanted: float = UNWANTED
    ) -> None:
        self.latest = RunPreview()
        self.trouble: str | None = None
        self.started = time.monotonic()
        self._limit, self._unwanted = limit, unwanted
        self._asked = self.started
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed when the process has ended
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            start_new_session=True,  # with its graders it is killed as one group
            env=_environment(),
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # what it said before it died tells why
            # Left open: the process ends when this end of the pipe does.
            self._process.stdin.write(json.dumps(config.model_dump(mode="json")).encode() + b"\n")
            self._process.stdin.flush()
        self._thread = threading.Thread(target=self._attend, name="preview", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int:
        """The process, which may have ended."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether more may become known."""
        return self._thread.is_alive() and self.latest.stage != "done"

    def ask(self) -> RunPreview:
        """Return what is known so far, and keep the process going."""
        self._asked = time.monotonic()
        return self.latest

    def cancel(self) -> None:
        """End the process now; nothing where it has ended already."""
        self._end("The preview was cancelled.")
        self._thread.join(timeout=5)

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it came within so many seconds."""
        self._thread.join(timeout=seconds)
        return not self._thread.is_alive()

    def _attend(self) -> None:
        """Read what the process finds out, and end it when its time is up."""
        assert self._process.stdout is not None
        output, rest = self._process.stdout.fileno(), b""
        while True:
            ready, _, _ = select.select([output], [], [], _LOOK)
            if ready:
                chunk = os.read(output, 1 << 16)
                if not chunk:
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                if lines:
                    self.latest = from_json(lines[-1].decode())
            now = time.monotonic()
            if self.latest.stage == "done":
                self._kill()  # taking torch down would keep a core for seconds more
                break
            if now - self.started > self._limit:
                self._end(
                    f"The preview took longer than {self._limit:g} s and was ended; `grpo-lab preview` in a terminal "
                    "has no limit."
                )
            elif now - self._asked > self._unwanted:
                self._end("Nobody waited for the preview any more.")
        code = self._process.wait()
        if self.latest.stage != "done" and self.trouble is None:
            self.trouble = f"The preview's process ended with {code}. {self._last_line()}"
        self._close()

    def _end(self, trouble: str) -> None:
        if self._process.poll() is None:
            self.trouble = self.trouble or trouble
            self._kill()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _last_line(self) -> str:
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _SAID))
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "It said nothing."

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._said):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class Previews:
    """The newest previews by what they are of; those that are done are kept, so that asking again costs nothing."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, PreviewJob] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, key: str, config: RunConfig) -> PreviewJob:
        """Return the preview of this key, begun anew where it had failed."""
        with self._lock:
            job = self._jobs.get(key)
            if job is None or job.trouble is not None:
                job = self._jobs[key] = PreviewJob(config)
            self._jobs.move_to_end(key)
            while len(self._jobs) > KEPT:
                self._jobs.popitem(last=False)[1].cancel()
            return job

    def find(self, key: str) -> PreviewJob | None:
        """Return the preview of this key, or None where there is none (any more)."""
        return self._jobs.get(key)

    def drop(self, key: str) -> None:
        """End a preview that is under way and forget it; one that is done is kept."""
        with self._lock:
            job = self._jobs.get(key)
            if job is not None and job.running:
                self._jobs.pop(key).cancel()


@st.cache_resource(show_spinner=False)
def previews() -> Previews:
    """Return the previews that all sessions of the web process share."""
    return Previews()


def preview_key(config: RunConfig) -> str:
    """Return a hash of what a preview depends on: fields, and the state of local files."""
    tree = config.model_dump(mode="json")
    matters: dict[str, Any] = {
        "task": tree["task"],
        "prompt": tree["prompt"],
        "model": [config.model.name, config.model.init_from],
        "rollout": [config.rollout.rollout_batch_size, config.rollout.group_size],
        "evaluation": [config.evaluation.size, config.evaluation.split, config.evaluation.seed],
        "seed": config.seed,
        "grpo": config.grpo.steps > 0,
        "files": file_states(config.task.path) if config.task.path else (),
    }
    return hashlib.sha256(json.dumps(matters, sort_keys=True).encode()).hexdigest()[:16]


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": python_path(),
        # Beside the page and perhaps a run: no more than one core.
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
