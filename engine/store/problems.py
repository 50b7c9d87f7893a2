"""Problems, each stored once however often it is asked."""

import hashlib
from collections.abc import Iterable

from sqlalchemy import Connection, select

from engine.store import schema
from engine.store.rows import insert_into
from engine.store.text import clean_text
from engine.types import Problem

# SQLite allows 32,766 values in one statement and older builds 999.
_CHUNK = 900


def store_problems(connection: Connection, problems: Iterable[Problem]) -> dict[Problem, int]:
    """Return the key of each problem, after storing those not yet known."""
    digests = {problem: _digest(problem) for problem in dict.fromkeys(problems)}
    keys = _known(connection, list(digests.values()))
    missing = [(digest, problem) for problem, digest in digests.items() if digest not in keys]
    if missing:
        # Sorted, so that two PostgreSQL transactions with problems in common lock them in one order.
        rows = [
            {
                "digest": digest,
                "problem_id": clean_text(problem.problem_id),
                "split": problem.split,
                "question": clean_text(problem.question),
                "gold": clean_text(problem.gold),
            }
            for digest, problem in sorted(missing, key=lambda pair: pair[0])
        ]
        connection.execute(insert_into(connection, schema.problem).on_conflict_do_nothing(), rows)
        keys |= _known(connection, [digest for digest, _ in missing])
    return {problem: keys[digest] for problem, digest in digests.items()}


def _known(connection: Connection, digests: list[str]) -> dict[str, int]:
    problem = schema.problem
    found: dict[str, int] = {}
    for start in range(0, len(digests), _CHUNK):
        query = select(problem.c.digest, problem.c.problem_key).where(
            problem.c.digest.in_(digests[start : start + _CHUNK])
        )
        found |= {row.digest: row.problem_key for row in connection.execute(query)}
    return found


def _digest(problem: Problem) -> str:
    parts = (problem.problem_id, problem.split, problem.question, problem.gold)
    # The lengths keep ("ab", "c") apart from ("a", "bc").
    raw = "\0".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).hexdigest()[:32]
