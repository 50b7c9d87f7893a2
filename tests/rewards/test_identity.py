"""The version of the grader, held against its verdicts on every answer of tests/rewards/cases.py."""

import hashlib
import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.errors import RewardError
from engine.rewards import identity
from engine.rewards.choice import reward_names
from engine.rewards.grading import grade, grade_answers
from engine.rewards.identity import RULES, RULES_VERSION, headline_of, reward_identity, rule_of
from engine.rewards.own import OwnReward
from engine.rewards.pool import GraderPool
from tests.rewards.cases import ANSWERS, COMPLETIONS

VERDICTS_OF_VERSION = {1: "cd53e3cb5c865567"}
LOOK = (
    "The verdicts on tests/rewards/cases.py are not those that were noted for the version of the rules. If an answer "
    "that stood there before is judged in another way, raise RULES_VERSION in engine/rewards/identity.py; if cases "
    "were only added, keep it. Then note the new digest here."
)


@pytest.fixture(scope="module")
def pool() -> Iterator[GraderPool]:
    with GraderPool(1) as pool:
        yield pool


def test_the_verdicts_on_all_cases_are_those_noted_for_the_version_of_the_rules(pool: GraderPool):
    table = []
    for cases, judge in ((ANSWERS, grade_answers), (COMPLETIONS, grade)):
        rows = sorted({row[:3] for kind in cases.values() for row in kind})
        for format_name in sorted({row[0] for row in rows}):
            pairs = [row[1:] for row in rows if row[0] == format_name]
            found = judge(pairs, format_name, pool=pool)
            table += [[format_name, *pair, answer.verdict] for pair, answer in zip(pairs, found, strict=True)]
    assert len(table) > 400
    digest = hashlib.sha256(json.dumps(table).encode()).hexdigest()[:16]
    assert {RULES_VERSION: digest} == VERDICTS_OF_VERSION, LOOK


def test_a_verifier_names_the_rules_and_math_verify():
    found = reward_identity("boxed")
    assert found.version == f"rules {RULES_VERSION}, math-verify {version('math-verify')}"
    assert found.headline == f"boxed ({found.version})"
    assert found.digest is None


def test_the_reward_of_reasoning_gym_names_its_package():
    assert reward_identity("reasoning_gym").version == (
        f"rules {RULES_VERSION}, reasoning-gym {version('reasoning-gym')}"
    )


def test_a_package_that_is_not_there_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch):
    def absent(_package: str) -> str:
        raise identity.PackageNotFoundError

    monkeypatch.setattr(identity, "version", absent)
    assert reward_identity("reasoning_gym").version.endswith("reasoning-gym not installed")


def test_a_persons_own_reward_has_the_digest_of_its_file_as_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRPO_LAB_REWARDS_DIR", str(tmp_path))
    (tmp_path / "mine.py").write_text("first")
    first = reward_identity("own:mine")
    (tmp_path / "mine.py").write_text("second")
    second = reward_identity("own:mine")
    assert first.digest == hashlib.sha256(b"first").hexdigest()
    assert first.version == f"sha256 {first.digest[:12]}"
    assert second.headline != first.headline
    begun = OwnReward("mine", tmp_path / "mine.py", "first")
    assert reward_identity("own:mine", begun).headline == first.headline


def test_every_built_in_reward_has_its_rule_on_one_line():
    assert sorted(RULES) == reward_names()
    for name in reward_names():
        found = reward_identity(name)
        assert "\n" not in found.rule
        assert (headline_of(found.message), rule_of(found.message)) == (found.headline, found.rule)


def test_the_rule_for_accounts_names_rounding_percent_and_brackets():
    rule = RULES["finqa"]
    assert all(word in rule for word in ("rounding", "5 %", "1 %", "Percent", "brackets is negative"))


def test_a_name_that_is_none_is_refused():
    with pytest.raises(RewardError, match=r"prompt\.reward=best is not a reward"):
        reward_identity("best")
