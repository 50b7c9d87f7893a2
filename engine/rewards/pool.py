"""Judges answers in other processes, so that none can hang or fill the memory of this one."""

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from types import TracebackType
from typing import Any, Self

from engine.errors import RewardError
from engine.places import python_path
from engine.types import Problem, Reward, Verdict

SECONDS = 5.0  # for one answer
MEGABYTES = 1024  # of address space for one worker
_AHEAD = 4  # requests on their way per worker
_START = 60.0  # seconds in which a grader has to have imported its parsers, or a file of the person's own
# One thread each: the children are the parallelism, and a process with threads is none to fork.
_SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_STARTS = 2  # of a grader for one batch


@dataclass(frozen=True, slots=True)
class Question:
    """An answer to be judged against gold by the rule of a format; without an answer, gold itself is looked at."""

    answer: str | None
    gold: str
    format: str


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A completion for the function of the person's own file; without a completion, the file is only loaded."""

    path: str
    source: str
    completion: str | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Graded:
    """What became of a question, and how long its judging took, in seconds; `reward` is what an own function gave."""

    verdict: Verdict
    reason: str
    seconds: float
    reward: Reward | None = None


class GraderPool:
    """A grader process with `workers` children. May be called from any thread; one batch is judged at a time.

    Args:
        workers: how many answers are judged at once; by default the cores of this process, at most 4.
        seconds: after which the judging of an answer is stopped, its verdict "not_graded".
        megabytes: the address space of each child.
        own: whether it is asked OwnQuestions, and not Questions: it leaves out the parsers then.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        seconds: float = SECONDS,
        megabytes: int = MEGABYTES,
        own: bool = False,
    ) -> None:
        self.workers = workers if workers is not None else min(available_cores(), 4)
        self.seconds, self.megabytes, self.own = seconds, megabytes, own
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def judge(self, questions: Sequence[Question | OwnQuestion]) -> list[Graded]:
        """Return the verdicts in the order of `questions`.

        Raises:
            RewardError: if no grader process can be started.
        """
        if not questions:
            return []
        with self._lock:
            try:
                return self._judge(questions)
            except BaseException:  # the pipes may hold half a line
                self._stop()
                raise

    def close(self) -> None:
        """End the processes; the next `judge` starts new ones."""
        with self._lock:
            self._stop()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes."""
        self.close()

    @property
    def pid(self) -> int | None:
        """The grader process, None where none is running."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def _judge(self, questions: Sequence[Question | OwnQuestion]) -> list[Graded]:
        found: dict[int, Graded] = {}
        for _ in range(_STARTS):
            self._ask([(place, question) for place, question in enumerate(questions) if place not in found], found)
            if len(found) == len(questions):
                break
            self._stop()
        if not found:
            raise RewardError(
                "graders: the grader process ended or was silent before its first answer; see standard error, and "
                f"try `{sys.executable} -m engine.rewards.grader --help`."
            )
        lost = Graded("not_graded", "the grader process was lost", 0.0)
        return [found.get(place, lost) for place in range(len(questions))]

    def _ask(self, waiting: Sequence[tuple[int, Question | OwnQuestion]], found: dict[int, Graded]) -> None:
        """Put verdicts into `found`, until all are there or the grader process is lost."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        answers, asking = process.stdout.fileno(), process.stdin.fileno()
        reader = _Lines(answers)
        os.set_blocking(asking, False)  # it may be full while the grader waits for its answers to be read
        sent = received = 0
        outgoing = b""
        while received < len(waiting):
            while sent < len(waiting) and sent - received < _AHEAD * self.workers:
                place, question = waiting[sent]
                outgoing += json.dumps({"id": place, **asdict(question)}).encode() + b"\n"
                sent += 1
            waited = select.select([answers], [asking] if outgoing else [], [], self.seconds + _START)
            if not any(waited):
                return
            if waited[1]:
                try:
                    outgoing = outgoing[os.write(asking, outgoing) :]
                except OSError:
                    return
            lines = reader.read(self.seconds + _START) if waited[0] else []
            if lines is None:
                return
            for line in lines:
                reply: dict[str, Any] = json.loads(line)
                found[reply["id"]] = _graded(reply)
                received += 1

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._owner != os.getpid():  # a forked copy of the caller: the pipes belong to the original
            self._process, self._owner = None, os.getpid()
        if self.pid is None:
            self._stop()
            limits = ("--workers", self.workers, "--seconds", self.seconds, "--megabytes", self.megabytes)
            kind = ["--own"] if self.own else []
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "engine.rewards.grader", *map(str, limits), *kind],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, **(_SINGLE if self.own else {}), "PYTHONPATH": python_path()},
                )
            except OSError as error:
                raise RewardError(f"graders: {sys.executable} cannot be started: {error}") from error
        assert self._process is not None
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()  # ends the grader, which ends its children
        process.stdout.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _graded(reply: dict[str, Any]) -> Graded:
    verdict, reason = reply["verdict"], reply["reason"]
    reward = Reward(reply["value"], reply["parts"], reply["answer"], verdict, reason) if "parts" in reply else None
    return Graded(verdict, reason, reply["seconds"], reward)


class _Lines:
    """Reads whole lines from a pipe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._rest = descriptor, b""

    def read(self, seconds: float) -> list[bytes] | None:
        """Return the lines that are there, after a wait for at least one; None at the end, or after `seconds`."""
        while True:
            ready, _, _ = select.select([self._descriptor], [], [], seconds)
            chunk = os.read(self._descriptor, 1 << 16) if ready else b""
            if not chunk:
                return None
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if lines:
                return lines


def available_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_shared = GraderPool()
atexit.register(_shared.close)


def shared_pool() -> GraderPool:
    """Return the pool of this process. It starts with its first question and ends with the process."""
    return _shared
