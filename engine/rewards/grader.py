"""`python -m engine.rewards.grader`: judges answers in child processes that it kills when they take too long.

Requests come on standard input, verdicts go to standard output, one JSON document a line, in any order. This process
computes nothing itself: it has math-verify imported, forks a child for each worker and watches them. So a child that
hangs inside one long multiplication is killed all the same, its successor is there in milliseconds, and no thread of
the caller is ever forked. It ends, and its children with it, when its input ends, as it does when the caller dies.

With `--own` the requests are for the function of a person's own file, which each child loads once. Loading has a time
limit of its own, and a child is then killed with all the processes it has started.
"""

import argparse
import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.errors import RewardError
from engine.rewards.judging import judge, read_gold

LOADING = 30.0  # seconds for a file of the person's own
ANSWERS_PER_WORKER = 500  # then it is replaced, with all that its caches hold
_PR_SET_PDEATHSIG = 1
Document = dict[str, Any]


@dataclass
class Worker:
    """A child process; `request` is what it is judging, None while it waits; `loading` until an own file is loaded."""

    pid: int
    channel: socket.socket
    buffer: bytes = b""
    request: Document | None = None
    started: float = 0.0
    loading: bool = False
    answers: int = 0


class Grader:
    """Hands requests to workers, and answers for those that take longer than `seconds` or die."""

    def __init__(self, requests: int, replies: int, *, workers: int, seconds: float, megabytes: int, own: bool) -> None:
        self._requests, self._replies = requests, replies
        self._seconds, self._megabytes, self._own = seconds, megabytes, own
        self._waiting: deque[Document] = deque()
        self._buffer = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        self._workers: list[Worker] = []
        for _ in range(workers):
            self._fork()

    def run(self) -> None:
        """Work until the input ends."""
        try:
            while self._turn():
                pass
        finally:
            for worker in self._workers:
                _kill(worker, group=self._own)

    def _turn(self) -> bool:
        for worker in list(self._workers):
            if worker.request is None and self._waiting:
                self._hand_over(worker, self._waiting.popleft())
        now = time.monotonic()
        ends = [worker.started + self._limit(worker) for worker in self._workers if worker.request is not None]
        ready = self._selector.select(max(0.0, min(ends) - now) if ends else None)
        for key, _ in ready:
            if key.data is not None:
                self._hear(key.data)
            elif not self._take_requests():
                return False
        self._stop_the_late()
        return True

    def _take_requests(self) -> bool:
        chunk = os.read(self._requests, 1 << 16)
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        self._waiting.extend(json.loads(line) for line in lines)
        return bool(chunk)

    def _hand_over(self, worker: Worker, request: Document) -> None:
        worker.request, worker.started, worker.loading = request, time.monotonic(), self._own
        with contextlib.suppress(OSError):  # a worker that has died is heard of at its end of the channel
            worker.channel.sendall(json.dumps(request).encode() + b"\n")

    def _hear(self, worker: Worker) -> None:
        try:
            chunk = worker.channel.recv(1 << 16)
        except OSError:
            chunk = b""
        if not chunk:
            died = f"the grader process ended by itself, at {self._megabytes} MiB or by a fault"
            self._give_up(worker, died)
            return
        worker.buffer += chunk
        *lines, worker.buffer = worker.buffer.split(b"\n")
        for reply in map(json.loads, lines):
            if "loaded" in reply:
                worker.started, worker.loading = time.monotonic(), False
                continue
            worker.answers += 1
            worn = reply.pop("worn", False) or worker.answers >= ANSWERS_PER_WORKER
            self._reply(worker, reply)
            if worn:
                self._replace(worker)

    def _stop_the_late(self) -> None:
        now = time.monotonic()
        for worker in list(self._workers):
            limit = self._limit(worker)
            if worker.request is not None and now >= worker.started + limit:
                self._give_up(worker, f"stopped after {limit:g} s{' while its file was loaded' * worker.loading}")

    def _limit(self, worker: Worker) -> float:
        return LOADING if worker.loading else self._seconds

    def _give_up(self, worker: Worker, reason: str) -> None:
        self._replace(worker)
        if worker.request is not None:
            self._reply(worker, {"verdict": "not_graded", "reason": reason})

    def _reply(self, worker: Worker, reply: Document) -> None:
        assert worker.request is not None
        document = {"seconds": time.monotonic() - worker.started} | reply | {"id": worker.request["id"]}
        worker.request = None
        left = json.dumps(document).encode() + b"\n"
        while left:
            left = left[os.write(self._replies, left) :]

    def _replace(self, worker: Worker) -> None:
        self._selector.unregister(worker.channel)
        self._workers.remove(worker)
        _kill(worker, group=self._own)
        self._fork()

    def _fork(self) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                ours.close()
                self._close_all()
                _die_with(parent)
                _limit_memory(self._megabytes)
                if self._own:
                    os.setpgid(0, 0)
                _work(theirs, self._megabytes)
            os._exit(0)
        theirs.close()
        worker = Worker(pid, ours)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)

    def _close_all(self) -> None:
        """In a child: let go of what is the parent's, so that the others' channels end when they should."""
        os.close(self._requests)
        os.close(self._replies)
        self._selector.close()
        for worker in self._workers:
            worker.channel.close()


def judge_here(request: Document) -> Document:
    """Return verdict and reason of one request, computed in this process; of a request without answer, of its gold."""
    from engine.rewards import symbolic

    try:
        if request["answer"] is None:
            symbolic.check(read_gold(request["gold"], request["format"]))
            return {"verdict": "correct", "reason": "gold can be compared"}
        judgement = judge(request["answer"], request["gold"], request["format"], symbolic.same)
    except MemoryError:
        return {"verdict": "not_graded", "reason": "out of memory", "worn": True}
    except RewardError as error:
        return {"verdict": "not_graded", "reason": str(error)}
    except Exception as error:  # whatever a parser raises costs one answer
        return {"verdict": "not_graded", "reason": f"{type(error).__name__}: {error}"[:500], "worn": True}
    if judgement is None:
        return {"verdict": "unreadable", "reason": "the answer cannot be parsed"}
    return {"verdict": judgement.verdict, "reason": judgement.reason}


def _work(channel: socket.socket, megabytes: int) -> None:
    with channel.makefile("rwb") as lines:
        for line in lines:
            for reply in _replies(json.loads(line)):
                if reply.get("reason") == "out of memory":
                    reply["reason"] = f"needs more than {megabytes} MiB"
                lines.write(json.dumps(reply).encode() + b"\n")
                lines.flush()


def _replies(request: Document) -> Iterator[Document]:
    """Yield the reply to one request; before that of an own file's function, that the file is loaded."""
    if "source" not in request:
        yield judge_here(request)
        return
    from engine.rewards import hosting

    try:
        function = hosting.load(request["path"], request["source"])
    except RewardError as error:
        yield {"verdict": "not_graded", "reason": str(error)}
        return
    yield {"loaded": True}
    if request["completion"] is None:
        yield {"verdict": "correct", "reason": "the file can be loaded"}
    else:
        yield hosting.judge(function, request["path"], request["completion"], request["problem"])


def _kill(worker: Worker, *, group: bool) -> None:
    worker.channel.close()
    if group:
        with contextlib.suppress(ProcessLookupError):  # a child that has only just been forked has none yet
            os.killpg(worker.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGKILL)
    os.waitpid(worker.pid, 0)


def _die_with(parent: int) -> None:
    """Have this process killed when the one that forked it ends, even by SIGKILL; Linux alone can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _limit_memory(megabytes: int) -> None:
    if sys.platform == "linux":  # elsewhere the limit is not kept
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


def main() -> None:
    """Judge what comes on standard input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="time limit for one answer")
    parser.add_argument("--megabytes", type=int, required=True, help="address space of one worker")
    parser.add_argument("--own", action="store_true", help="run files of the person's own, and load no parsers")
    limits = parser.parse_args()
    requests, replies, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the caller's; it ends the input

    if limits.own:
        importlib.import_module("engine.rewards.hosting")
    else:
        from engine.rewards import symbolic

        symbolic.warm_up()
    gc.freeze()  # the children share what is loaded
    os.dup2(nothing, 2)  # what a parser prints goes nowhere; a failed start was heard
    settings = {"seconds": limits.seconds, "megabytes": limits.megabytes, "own": limits.own}
    Grader(requests, replies, workers=limits.workers, **settings).run()


if __name__ == "__main__":
    main()
