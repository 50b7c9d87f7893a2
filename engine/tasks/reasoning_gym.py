"""Problems of reasoning-gym's generators, each judged by its generator's own verifier.

A generator gives any number of entries, one for a seed and a place. The split of an entry is decided by a hash of its
question, so that splits share none, for every seed.

`Problem.gold` is JSON that names the verifier and holds what it needs:
`{"verifier": "reasoning_gym", "generator": "chain_sum", "options": {}, "answer": "12", "metadata": {…}}`.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from types import ModuleType
from typing import Any

import yaml

from engine.config.sections import TaskConfig
from engine.errors import TaskError
from engine.tasks.report import DataReport, question_key
from engine.tasks.schedule import DataSchedule
from engine.types import Problem, Split

VERIFIER = "reasoning_gym"
BUCKETS = 5  # one bucket in five is the test split, one the validation split, the rest trains
CHUNK = 64  # entries that are generated under one seed
PATIENCE = 1_000  # entries in a row without a new problem before a generator counts as used up
_TUPLE = "__tuple__"  # JSON has no tuples, and some verifiers compare them


class ReasoningGymTask:
    """The problems of one generator, endless and with random access, as arithmetic's."""

    report: DataReport | None = None

    def __init__(self, config: TaskConfig) -> None:
        assert config.generator is not None  # held by a rule of the config
        self._generator = config.generator
        self._options = read_options(config.generator_options)
        self._name = f"reasoning_gym/{config.generator}/{config.generator_options or ''}"
        self._made = _make(self._generator, self._options, seed=0)

    def train_batch(self, step: int, n: int, *, seed: int) -> list[Problem]:
        """Return the `n` distinct training problems of `step`, whatever was asked before.

        Raises TaskError where the generator has fewer.
        """
        return self._draw("train", n, f"{self._name}/train/{seed}/step/{step}")

    def problems(self, split: Split, n: int, *, seed: int) -> list[Problem]:
        """Return `n` distinct problems of `split`; a larger `n` only adds to them.

        Raises TaskError where the generator has fewer.
        """
        return self._draw(split, n, f"{self._name}/{split}/{seed}")

    def schedule(self, _n: int, /) -> DataSchedule | None:
        """None: the problems do not run out."""
        return None

    def _draw(self, split: Split, n: int, name: str) -> list[Problem]:
        drawn: dict[str, Problem] = {}
        misses = 0
        for entry in self._entries(name):
            if len(drawn) == n:
                break
            if misses == PATIENCE:
                raise TaskError(
                    f"n: {n} distinct {split} problems were asked for, but {self._generator} gave {len(drawn)} and "
                    f"then none in {PATIENCE} more; ask for fewer, or widen it with task.generator_options."
                )
            key = question_key(entry["question"])
            if key in drawn or split_of(key) != split:
                misses += 1
                continue
            misses = 0
            drawn[key] = self._problem(entry, split)
        return list(drawn.values())

    def _problem(self, entry: dict[str, Any], split: Split) -> Problem:
        answer, metadata = entry["answer"], _pack(entry["metadata"])
        document = {"verifier": VERIFIER, "generator": self._generator, "options": self._options}
        gold = json.dumps({**document, "answer": answer, "metadata": metadata}, ensure_ascii=False)
        if answer is not None and score_answer(answer, gold) != self._made.score_answer(answer, entry):
            raise TaskError(
                f"task.generator: {self._generator} judges by something that its entries do not keep as text; choose "
                "another one."
            )
        digest = blake2b(f"{entry['question']}\0{gold}".encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        return Problem(f"{self._generator}-{digest}", entry["question"], gold, split)

    def _entries(self, name: str) -> Iterator[dict[str, Any]]:
        chunk = 0
        while True:
            digest = blake2b(f"{name}/{chunk}".encode(), digest_size=4).digest()
            made = _make(self._generator, self._options, seed=int.from_bytes(digest) >> 1)
            for place in range(CHUNK):
                entry: dict[str, Any] = made[place]
                yield entry
            chunk += 1


def split_of(key: str) -> Split:
    """The split that a question belongs to, from a hash of its key."""
    bucket = int.from_bytes(blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()) % BUCKETS
    if bucket == 0:
        return "test"
    return "validation" if bucket == 1 else "train"


def generator_names() -> tuple[str, ...]:
    """The names of the generators that are installed, sorted. Their package takes seconds to import.

    Raises TaskError where it is not installed.
    """
    return tuple(sorted(_gym().factory.DATASETS))


def score_answer(answer: str, gold: str) -> float:
    """What the generator's verifier gives `answer`: 0 to 1, and 1 exactly where it is right.

    Raises TaskError where `gold` names no such verifier; whatever the verifier raises on an answer it cannot read.
    """
    entry = json.loads(gold)
    if not isinstance(entry, dict) or entry.get("verifier") != VERIFIER:
        raise TaskError(
            f"gold: {gold[:80]} names no verifier of reasoning_gym; use this reward with its problems only."
        )
    whole = {"question": "", "answer": entry["answer"], "metadata": _unpack(entry["metadata"])}
    return float(_verifier(entry["generator"], json.dumps(entry["options"])).score_answer(answer, whole))


def gold_answer(gold: str) -> str | None:
    """The answer that the generator gives itself; None where it has none, and only the verifier tells.

    Raises TaskError where `gold` names no such verifier.
    """
    answer: str | None = _document(gold)["answer"]
    return answer


def read_options(text: str | None) -> dict[str, Any]:
    """`min_terms=2; max_terms=4` as a mapping; a value is read as YAML.

    Raises TaskError where a part has no `=`.
    """
    options = {}
    for part in (text or "").split(";"):
        name, equals, value = part.partition("=")
        if equals and name.strip():
            options[name.strip()] = yaml.safe_load(value)
        elif part.strip():
            raise TaskError(
                f"task.generator_options: {part.strip()} has no value; write NAME=VALUE, several of them apart by ;"
            )
    return options


def _document(gold: str) -> dict[str, Any]:
    try:
        document = json.loads(gold)
    except ValueError:
        document = None
    if not isinstance(document, dict) or document.get("verifier") != VERIFIER:
        raise TaskError(
            f"gold: {gold[:80]} names no verifier of reasoning_gym; use this reward with its problems only."
        )
    return document


def _make(generator: str, options: dict[str, Any], *, seed: int) -> Any:
    gym = _gym()
    if generator not in gym.factory.DATASETS:
        from difflib import get_close_matches

        close = " or ".join(get_close_matches(generator, gym.factory.DATASETS, n=2, cutoff=0.5))
        raise TaskError(
            f"task.generator: {generator} is not one of reasoning_gym's {len(gym.factory.DATASETS)} generators; "
            f"{f'did you mean {close}?' if close else 'see the list in its documentation.'}"
        )
    try:
        return gym.create_dataset(generator, seed=seed, size=CHUNK, **options)
    except (AssertionError, TypeError, ValueError) as error:
        raise TaskError(
            f"task.generator_options: {generator} does not take {options or 'its defaults'}: {error}; correct them."
        ) from error


@lru_cache(maxsize=8)
def _verifier(generator: str, options: str) -> Any:
    return _make(generator, json.loads(options), seed=0)


def _gym() -> ModuleType:
    try:
        import reasoning_gym
        import reasoning_gym.factory
    except ImportError as error:
        raise TaskError(
            "task.name: reasoning_gym needs the package reasoning-gym, which is not installed; "
            "pip install 'grpo-lab[reasoning-gym]'"
        ) from error
    return reasoning_gym  # type: ignore[no-any-return]


def _pack(value: Any) -> Any:
    """A value as JSON keeps it, with tuples marked."""
    if isinstance(value, tuple):
        return {_TUPLE: [_pack(each) for each in value]}
    if isinstance(value, list):
        return [_pack(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _pack(each) for key, each in value.items()}
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(each) for each in value]
    if isinstance(value, dict):
        return (
            tuple(_unpack(each) for each in value[_TUPLE])
            if _TUPLE in value
            else {key: _unpack(each) for key, each in value.items()}
        )
    return value
