import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil
import pytest

from engine.errors import RewardError
from engine.rewards import pool as pools
from engine.rewards.grader import judge_here
from engine.rewards.grading import gold_faults, grade
from engine.rewards.pool import GraderPool, Question

LIMIT = 2.0  # seconds; short, so that the tests are
HANGS = r"(10!)!"  # math-verify works at it for hours


def equal(k: int) -> Question:
    return Question(rf"\frac{{{k}x+7}}{{10}}", rf"\frac{{7+{k}x}}{{10}}", "boxed")


def unequal(k: int) -> Question:
    return Question(rf"\frac{{{k}x+8}}{{10}}", rf"\frac{{7+{k}x}}{{10}}", "boxed")


@pytest.fixture(scope="module")
def pool() -> Iterator[GraderPool]:
    with GraderPool(2, seconds=LIMIT) as pool:
        yield pool


def processes(pool: GraderPool) -> list[psutil.Process]:
    grader = psutil.Process(pool.pid)
    return [grader, *grader.children(recursive=True)]


def wait_until_gone(members: list[psutil.Process], seconds: float) -> None:
    _, alive = psutil.wait_procs(members, timeout=seconds)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []


def test_verdicts_come_in_the_order_of_the_questions(pool: GraderPool):
    questions = [equal(2), unequal(3), Question("x+", "x", "boxed"), equal(4)]
    assert [found.verdict for found in pool.judge(questions)] == ["correct", "wrong", "unreadable", "correct"]
    assert pool.judge([]) == []


def test_an_answer_that_hangs_is_stopped_and_leaves_the_others_as_they_are(pool: GraderPool):
    questions = [equal(5), Question(HANGS, "5", "boxed"), unequal(6), equal(7)]
    found = pool.judge(questions)
    assert [each.verdict for each in found] == ["correct", "not_graded", "wrong", "correct"]
    assert found[1].reason == "stopped after 2 s"
    assert LIMIT <= found[1].seconds < LIMIT + 1
    assert [each.seconds < LIMIT for each in found] == [True, False, True, True]


@pytest.mark.parametrize(
    "hostile", ["9**9**9", "10**10**10", "(x+1)**5000", r"9^{9^{9^{9}}}", "(10^{9})!", r"\binom{10^9}{10^8}"]
)
def test_what_cannot_be_worked_out_is_never_correct_and_never_takes_longer_than_the_limit(
    pool: GraderPool, hostile: str
):
    started = time.monotonic()
    (found,) = pool.judge([Question(hostile, "5", "boxed")])
    assert found.verdict in ("wrong", "not_graded")
    assert time.monotonic() - started < LIMIT + 20  # alone it would take hours
    assert [each.verdict for each in pool.judge([equal(8)])] == ["correct"]


@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit is kept on Linux alone")
def test_no_child_gets_more_than_its_memory():
    with GraderPool(1, seconds=20, megabytes=300) as pool:
        assert pool.judge([equal(2)])[0].verdict == "correct"
        done, peaks = threading.Event(), []

        def watch() -> None:
            while not done.is_set():
                peaks.extend(each.memory_info().vms for each in processes(pool)[1:] if each.is_running())
                done.wait(0.02)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            pool.judge([Question("9**9**9", "5", "boxed")])
        finally:
            done.set()
            watcher.join()
        assert 0 < max(peaks) <= 300 << 20


def test_it_works_from_a_thread_that_is_not_the_main_one(pool: GraderPool):
    found: dict[int, str] = {}

    def judge(k: int) -> None:
        found[k] = pool.judge([equal(k)])[0].verdict

    threads = [threading.Thread(target=judge, args=(k,)) for k in range(2, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(2, 6), "correct")


def test_the_processes_end_when_it_is_closed_and_new_ones_start_when_it_is_asked_again():
    with GraderPool(2) as pool:
        assert pool.judge([equal(2)])[0].verdict == "correct"
        first = processes(pool)
        assert len(first) == 3
        pool.close()
        wait_until_gone(first, 5)
        assert pool.pid is None
        assert pool.judge([equal(2)])[0].verdict == "correct"
        second = processes(pool)
    wait_until_gone(second, 5)


def test_a_grader_that_was_killed_is_replaced_within_the_batch():
    with GraderPool(1) as pool:
        assert pool.judge([equal(2)])[0].verdict == "correct"
        members = processes(pool)
        os.kill(members[0].pid, signal.SIGKILL)
        assert [each.verdict for each in pool.judge([equal(3), unequal(4)])] == ["correct", "wrong"]
        wait_until_gone(members, 5)


def test_a_child_that_was_killed_costs_its_answer_alone(pool: GraderPool):
    def kill_a_child() -> None:
        time.sleep(0.5)
        busiest = max(processes(pool)[1:], key=lambda each: each.cpu_times().user)
        os.kill(busiest.pid, signal.SIGKILL)

    pool.judge([equal(2), equal(3)])
    killer = threading.Thread(target=kill_a_child)
    killer.start()
    found = pool.judge([Question(HANGS, "5", "boxed"), equal(4)])
    killer.join()
    assert [each.verdict for each in found] == ["not_graded", "correct"]
    assert "the grader process ended" in found[0].reason


ORPHAN = """
import os, signal, sys, threading, time
from engine.rewards.pool import GraderPool, Question
pool = GraderPool(2, seconds=60)
pool.judge([Question("x+1", "1+x", "boxed")])
threading.Thread(target=pool.judge, args=([Question("(10!)!", "5", "boxed")] * 2,), daemon=True).start()
time.sleep(0.3)
print(pool.pid, flush=True)
time.sleep(60)
"""


def test_no_process_outlives_a_caller_that_is_killed_in_the_middle_of_a_batch():
    caller = subprocess.Popen([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, text=True)
    assert caller.stdout is not None
    grader = psutil.Process(int(caller.stdout.readline()))
    members = [grader, *grader.children(recursive=True)]
    assert len(members) == 3
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    caller.stdout.close()
    wait_until_gone(members, 5)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_no_child_outlives_a_grader_that_is_killed():
    with GraderPool(2) as pool:
        pool.judge([equal(2)])
        members = processes(pool)
        os.kill(members[0].pid, signal.SIGKILL)
        wait_until_gone(members[1:], 5)


def test_the_grader_loads_no_torch_and_no_numpy():
    code = "import sys, engine.rewards.grader, engine.rewards.symbolic; print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


def test_ordinary_numbers_need_no_process():
    pool = GraderPool(1)
    (answer,) = grade([("#### 42", "42")], "gsm8k", pool=pool)
    assert (answer.verdict, pool.pid) == ("correct", None)


def test_the_same_question_is_asked_once(monkeypatch: pytest.MonkeyPatch, pool: GraderPool):
    asked: list[int] = []
    judge = pool.judge
    monkeypatch.setattr(pool, "judge", lambda questions: asked.append(len(questions)) or judge(questions))
    found = grade([(r"\boxed{1+x}", "x+1"), (r"\boxed{2+x}", "x+1"), (r"\boxed{1+x}", "x+1")], "boxed", pool=pool)
    assert [answer.verdict for answer in found] == ["correct", "wrong", "correct"]
    assert asked == [2]


def test_a_program_that_cannot_be_started_is_an_error_and_no_verdict(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pools.sys, "executable", "/nowhere/python")
    with pytest.raises(RewardError, match=r"^graders: /nowhere/python cannot be started"):
        GraderPool(1).judge([equal(2)])


def test_a_grader_that_ends_at_once_is_an_error_and_no_verdict(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pools.sys, "executable", "/bin/false")
    with pytest.raises(RewardError, match=r"^graders: the grader process ended"):
        GraderPool(1).judge([equal(2)])


def test_gold_that_does_not_grade_itself_correct_is_listed(pool: GraderPool):
    golds = ["42", "", r"\frac{1}{2}", "n/a", r"x^2+", r"\sqrt{3}", r"(1, \frac{", "42"]
    assert list(gold_faults(golds, "boxed", pool=pool)) == ["", "n/a", r"(1, \frac{", "x^2+"]
    assert list(gold_faults(["6*7=<<6*7=42>>42\n#### 42", "#### none", r"\sqrt{3}"], "gsm8k", pool=pool)) == [
        "#### none",
        r"\sqrt{3}",
    ]


@pytest.mark.parametrize(
    ("raised", "reason"),
    [(MemoryError(), "out of memory"), (TypeError("no such thing"), "TypeError: no such thing")],
)
def test_a_parser_that_raises_costs_one_answer(monkeypatch: pytest.MonkeyPatch, raised: Exception, reason: str):
    from engine.rewards import symbolic

    def fail(answer: object, gold: object) -> bool:
        raise raised

    monkeypatch.setattr(symbolic, "same", fail)
    reply = judge_here({"id": 0, "answer": "x+1", "gold": "1+x", "format": "boxed"})
    assert (reply["verdict"], reply["reason"]) == ("not_graded", reason)
    assert json.dumps(reply)
