"""Which grader judged: the name of a reward, its version, and its rule in words, as they are stored with a run."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from engine.rewards.choice import reward_named
from engine.rewards.folder import OWN, rewards_folder
from engine.rewards.own import OwnReward, read_own
from engine.rewards.verifiers import RewardFn, Verifier

RULES_VERSION = 1
"""Raised by one whenever a verdict on any answer changes; tests/rewards/test_identity.py tells when to look."""

_ONE_ANSWER = (
    "numbers are equal as exact fractions, a percent sign or a unit that one side lacks may be left out, "
    "all else is compared by math-verify"
)
RULES: dict[str, str] = {
    "answer_tag": f"The last <answer>…</answer> says what gold says: {_ONE_ANSWER}. "
    "It must follow '</think> <answer>' with one space between.",
    "answer_tag_tolerant": f"The last <answer>…</answer> says what gold says: {_ONE_ANSWER}. "
    "Any white space, or none, may stand between </think> and <answer>.",
    "boxed": rf"The last complete \boxed{{…}} says what gold says: {_ONE_ANSWER}.",
    "gsm8k": f"The line after the last #### says what gold says, which is one number: {_ONE_ANSWER}.",
    "finqa": "The last answer tag, or what follows 'Answer:', is gold or a rounding of it: off by at most half of its "
    "own last decimal place and 5 % of gold, or half of gold's last place and 1 % of gold. Percent is divided by 100 "
    "unless the sign is left out on one side; a figure in brackets is negative.",
    "reasoning_gym": "The last complete answer tag is scored by the generator's own verifier; correct is a score of 1.",
}
"""The matching rule of each built-in reward, in a sentence or two; docs/grading.md has it in full."""


@dataclass(frozen=True, slots=True)
class RewardIdentity:
    """A reward, told apart from what bore its name before. `digest` is the sha256 of a person's own file."""

    name: str
    version: str
    rule: str
    digest: str | None = None

    @property
    def headline(self) -> str:
        """Name and version in one line: equal exactly where the grader is the same."""
        return f"{self.name} ({self.version})"

    @property
    def message(self) -> str:
        """What the event "grader" of a run says: the headline, and the rule on a line of its own."""
        return f"{self.headline}\n{self.rule}"


def reward_identity(name: str, reward: RewardFn | None = None) -> RewardIdentity:
    """Return the identity of the reward that `prompt.reward` names: of `reward`, else as it is here and now.

    Raises:
        RewardError: if there is none of that name.
    """
    if reward is None:  # a file is read and not run
        reward = read_own(name.removeprefix(OWN), rewards_folder()) if name.startswith(OWN) else reward_named(name)
    if isinstance(reward, OwnReward):  # it has no version but its contents
        return RewardIdentity(name, f"sha256 {reward.digest[:12]}", f"As the file of {name} has it.", reward.digest)
    rules = f"rules {RULES_VERSION}"
    if isinstance(reward, Verifier):
        return RewardIdentity(name, f"{rules}, math-verify {_installed('math-verify')}", RULES[name])
    return RewardIdentity(name, f"{rules}, reasoning-gym {_installed('reasoning-gym')}", RULES[name])


def headline_of(message: str) -> str:
    """Return the headline in the message of an event "grader"."""
    return message.partition("\n")[0]


def rule_of(message: str) -> str:
    """Return the rule in the message of an event "grader"."""
    return message.partition("\n")[2]


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
