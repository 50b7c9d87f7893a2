"""The process that grades stored answers again: started from a page, and outliving it."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import IO

from engine.places import python_path
from engine.store.database import Database
from engine.store.regrades import end_regrade

_COMMAND = (sys.executable, "-m", "engine.jobs.regrading")
_LAST_WORDS = 500


def start_regrade(db: Database, regrade_id: int, command: Sequence[str] = _COMMAND) -> threading.Thread:
    """Start the process of a regrading that has begun; it writes its own progress and its own end into the store.

    The thread that is returned waits for it, and writes a failure for a process that dies without a word; where this
    process is gone by then, the silence of the other one tells.
    """
    environment = {
        **os.environ,
        "GRPO_LAB_DATABASE_URL": db.url,
        "PYTHONPATH": python_path(),
        "OMP_NUM_THREADS": "1",
    }
    # A file and no pipe: the process may go on writing after this one has ended.
    words = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the thread that reads it
    try:
        child = subprocess.Popen(
            [*command, str(regrade_id)],
            stdin=subprocess.DEVNULL,
            stdout=words,
            stderr=words,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        words.close()
        end_regrade(db, regrade_id, "failed", f"its process cannot be started: {error}")
        return threading.Thread()
    waiting = threading.Thread(target=_wait, args=(db, regrade_id, child, words), name=f"regrade-{regrade_id}")
    waiting.daemon = True
    waiting.start()
    return waiting


def _wait(db: Database, regrade_id: int, child: "subprocess.Popen[bytes]", words: IO[bytes]) -> None:
    with words:
        code = child.wait()
        words.seek(0)
        said = words.read().decode(errors="replace").strip()[-_LAST_WORDS:]
    # Refused where the process has written its end, as it does unless it was killed or could not begin.
    end_regrade(db, regrade_id, "failed", f"its process ended with code {code} and left no word; {said}".rstrip("; "))
