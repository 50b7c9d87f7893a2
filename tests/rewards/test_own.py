"""Rewards of the person's own, run in grader processes."""

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from engine.errors import RewardError
from engine.rewards import own, own_template
from engine.rewards.choice import reward_named
from engine.rewards.folder import own_names, rewards_folder
from engine.rewards.own import OwnReward, read_own
from engine.rewards.pool import GraderPool
from engine.rewards.scoring import score_groups
from engine.rewards.trial import try_reward
from engine.types import Completion, Group, Problem, Reward

HEAD = "from engine.types import Problem, Reward\n\n\ndef reward(completion, gold, problem):\n"
MANY_WAYS = (
    HEAD
    + """\
    if completion == "hang":
        while True:
            pass
    if completion == "eat":
        return bytes(1 << 30)
    if completion == "raise":
        return helper(gold)
    if completion == "exit":
        raise SystemExit(3)
    if completion == "float":
        return 1.0
    if completion == "nan":
        return Reward(float("nan"), {}, None, "wrong")
    return Reward(2.5, {"format": 1.0, "mine": 0.25}, completion, "correct", problem.question + gold)


def helper(gold):
    numbers = {}
    return numbers[gold]
"""
)
PROBLEM = Problem("p", "1 + 2?", "3")


@pytest.fixture(scope="module")
def pool() -> Iterator[GraderPool]:
    with GraderPool(2, seconds=0.5, megabytes=1024, own=True) as pool:
        yield pool


def judged(pool: GraderPool, source: str, *completions: str) -> list[Reward]:
    reward = OwnReward("mine", Path("/rewards/mine.py"), source)
    return [each.reward for each in reward.judge([(text, PROBLEM) for text in completions], pool=pool)]


def test_a_whole_reward_comes_back_with_all_its_parts_and_the_function_sees_the_problem(pool: GraderPool):
    (found,) = judged(pool, MANY_WAYS, "Ünïcode \ud800")
    assert found == Reward(2.5, {"format": 1.0, "mine": 0.25}, "Ünïcode \ud800", "correct", "1 + 2?3")


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("hang", "stopped after 0.5 s"),
        ("raise", "KeyError: '3' (mine.py line 23)"),
        ("exit", "SystemExit: 3 (mine.py line 13)"),
        ("float", "the reward function returned float, not Reward"),
        ("nan", "value nan is not finite"),
        pytest.param(
            "eat",
            "MemoryError: more than a grader process may have (mine.py line 9)",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="the memory limit is kept on Linux alone"),
        ),
    ],
)
def test_what_goes_wrong_costs_its_own_completion_and_names_the_line(pool: GraderPool, completion: str, reason: str):
    before, found, after = judged(pool, MANY_WAYS, "a", completion, "b")
    assert (found.value, found.verdict, found.reason) == (None, "not_graded", reason)
    assert [(each.value, each.answer) for each in (before, after)] == [(2.5, "a"), (2.5, "b")]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("x = 1\n\ndef reward(:\n", "SyntaxError: invalid syntax (mine.py line 3)"),
        (
            "import engine\nimport no_such_module\n",
            "ModuleNotFoundError: No module named 'no_such_module' (mine.py line 2)",
        ),
        ("def check():\n    return 1 / 0\n\ncheck()\n", "ZeroDivisionError: division by zero (mine.py line 2)"),
        ("import sys\nsys.exit('no')\n", "SystemExit: no (mine.py line 2)"),
        ("def rewards(): ...\n", "mine.py has no function `reward(completion, gold, problem)`; define one"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why_with_its_line(pool: GraderPool, source: str, fault: str):
    assert OwnReward("mine", Path("/rewards/mine.py"), source).load_fault(pool=pool) == fault
    assert judged(pool, source, "a")[0].reason == fault


def test_loading_may_take_longer_than_an_answer(pool: GraderPool):
    slow = "import time\ntime.sleep(0.8)\n" + MANY_WAYS  # longer than an answer may take
    assert OwnReward("slow", Path("/rewards/slow.py"), slow).load_fault(pool=pool) is None


def test_a_file_is_loaded_once_in_a_process(tmp_path: Path):
    log = tmp_path / "loads"
    source = f"open({str(log)!r}, 'a').write('loaded ')\n" + MANY_WAYS
    with GraderPool(1, own=True) as one:
        assert [reward.answer for reward in judged(one, source, "a", "b", "c")] == ["a", "b", "c"]
        judged(one, source, "d")
    assert log.read_text() == "loaded "


def test_what_a_stopped_function_has_started_ends_with_it(tmp_path: Path):
    pid = tmp_path / "pid"
    source = HEAD + (
        "    import subprocess\n    child = subprocess.Popen(['sleep', '100'])\n"
        f"    open({str(pid)!r}, 'w').write(str(child.pid))\n    child.wait()\n"
    )
    with GraderPool(1, seconds=2, own=True) as one:
        assert judged(one, source, "a")[0].reason == "stopped after 2 s"
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(pid.read_text())).wait(timeout=10)  # killed, it may take a moment to be gone


def test_long_completions_and_answers_do_not_block_one_another(pool: GraderPool):
    source = HEAD + "    return Reward(0.0, {}, completion[:10_000], 'wrong')\n"
    texts = [str(number) * 40_000 for number in range(10)] * 4
    assert [found.answer for found in judged(pool, source, *texts)] == [text[:10_000] for text in texts]


def test_ordinary_imports_fit_the_memory_of_a_grader():
    source = "import numpy, sympy\n" + MANY_WAYS
    with GraderPool(1, megabytes=own.MEGABYTES, own=True) as one:
        assert OwnReward("mine", Path("/rewards/mine.py"), source).load_fault(pool=one) is None


def test_groups_are_scored_by_an_own_reward_with_their_problems(pool: GraderPool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(own, "_pool", pool)
    completions = tuple(Completion((1,), text, np.zeros(1, np.float32), "eos") for text in ("a", "raise"))
    groups = [Group(Problem(f"p{n}", f"q{n}", str(n)), "?", (1,), completions) for n in (1, 2)]
    rewards_P_G = score_groups(groups, OwnReward("mine", Path("/rewards/mine.py"), MANY_WAYS))
    assert [[each.reason for each in members] for members in rewards_P_G] == [
        ["q11", "KeyError: '1' (mine.py line 23)"],
        ["q22", "KeyError: '2' (mine.py line 23)"],
    ]


def test_the_template_is_a_reward_that_works(pool: GraderPool):
    source = Path(own_template.__file__).read_text()
    found = judged(pool, source, "So 1 + 2 is 3 </answer>", "4", "none")
    assert [(each.verdict, each.value, each.parts) for each in found] == [
        ("correct", 1.0, {"format": 1.0, "answer": 1.0}),
        ("wrong", 0.0, {"format": 0.0, "answer": 0.0}),
        ("unreadable", 0.0, {"format": 0.0, "answer": 0.0}),
    ]


def test_the_docs_have_the_template_as_it_is():
    page = Path(__file__).parents[2] / "docs" / "rewards.md"
    assert Path(own_template.__file__).read_text() in page.read_text()


class TestTrial:
    def test_it_returns_rewards_seconds_and_every_distinct_error_the_commonest_first(self, pool: GraderPool):
        items = [(text, "3", PROBLEM) for text in ("a", "raise", "float", "raise")]
        trial = try_reward(OwnReward("mine", Path("/rewards/mine.py"), MANY_WAYS), items, pool=pool)
        assert trial.values == [2.5]
        assert trial.errors == [
            ("KeyError: '3' (mine.py line 23)", 2),
            ("the reward function returned float, not Reward", 1),
        ]
        assert len(trial.seconds) == 4
        assert all(0 <= seconds <= trial.total_seconds for seconds in trial.seconds)

    def test_a_file_that_cannot_be_loaded_is_tried_once_for_all(self, pool: GraderPool):
        trial = try_reward(OwnReward("mine", Path("/rewards/mine.py"), "1 / 0"), [("a", "3", PROBLEM)] * 3, pool=pool)
        assert trial.errors == [("ZeroDivisionError: division by zero (mine.py line 1)", 3)]


class TestFolder:
    def test_it_lies_beside_the_database_file_unless_the_variable_says_otherwise(self):
        assert rewards_folder("sqlite:////data/lab/runs.db", {}) == Path("/data/lab/rewards")
        assert rewards_folder(None, {"GRPO_LAB_DATABASE_URL": "sqlite:////data/runs.db"}) == Path("/data/rewards")
        assert rewards_folder("postgresql://user@server/lab", {}) == Path.cwd() / "rewards"
        assert rewards_folder(None, {}) == Path.cwd() / "rewards"
        assert rewards_folder("sqlite:////data/runs.db", {"GRPO_LAB_REWARDS_DIR": "/mine"}) == Path("/mine")

    def test_files_with_plain_names_are_its_rewards(self, tmp_path: Path):
        for name in ("b.py", "a.py", "not-plain.py", "notes.txt"):
            (tmp_path / name).write_text("")
        assert own_names(tmp_path) == ["a", "b"]
        assert own_names(tmp_path / "nowhere") == []

    @pytest.mark.parametrize("name", ["../mine", "/etc/mine", "a/b", "mine.py", "", "a b", "é"])
    def test_a_name_is_never_a_path(self, tmp_path: Path, name: str):
        with pytest.raises(RewardError, match="is never a path"):
            read_own(name, tmp_path)

    def test_a_missing_file_is_an_error_that_lists_what_is_there(self, tmp_path: Path):
        (tmp_path / "a.py").write_text("")
        with pytest.raises(RewardError, match=r"own:mine: .*mine\.py cannot be read; the folder has own:a\. `grpo-lab"):
            read_own("mine", tmp_path)

    def test_the_digest_is_that_of_the_file(self, tmp_path: Path):
        (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
        digest = read_own("a", tmp_path).digest
        assert digest == hashlib.sha256(b"x = 1\r\n").hexdigest()


class TestChoice:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pool: GraderPool) -> Path:
        monkeypatch.setenv("GRPO_LAB_REWARDS_DIR", str(tmp_path))
        monkeypatch.setattr(own, "_pool", pool)
        return tmp_path

    def test_a_run_keeps_the_code_it_began_with(self, folder: Path):
        (folder / "mine.py").write_text(MANY_WAYS)
        first = reward_named("own:mine")
        (folder / "mine.py").write_text("1 / 0")
        assert reward_named("own:mine") is first
        assert first("a", "3").value == 2.5

    def test_a_file_that_cannot_be_loaded_is_refused_and_runs_in_no_process_of_the_caller(self, folder: Path):
        pid = folder / "pid"
        (folder / "mine.py").write_text(f"import os\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\n1 / 0\n")
        with pytest.raises(
            RewardError, match=r"own:mine cannot be loaded: ZeroDivision.*\(mine\.py line 3\); correct /"
        ):
            reward_named("own:mine")
        assert int(pid.read_text()) != os.getpid()

    def test_an_unknown_name_lists_what_is_there(self, folder: Path):
        with pytest.raises(
            RewardError, match=r"nothing is not a reward; choose one of answer_tag.*, or own:NAME for a"
        ):
            reward_named("nothing")
        (folder / "a.py").write_text("")
        with pytest.raises(RewardError, match=r"reasoning_gym, own:a$"):
            reward_named("nothing")
