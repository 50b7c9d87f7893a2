"""What is counted over the answers of an evaluation: an evaluation never changes, so it is read once."""

import streamlit as st

from dashboard.data.store import HASHES
from engine.store import reads
from engine.store.database import Database
from engine.store.records import AnswerCounts, EvaluationProblemRow


@st.cache_data(show_spinner=False, max_entries=2048, hash_funcs=HASHES)
def answer_counts(db: Database, evaluation_id: int) -> AnswerCounts:
    """Return how many answers each problem has, and how many of them are right."""
    return reads.answer_counts(db, evaluation_id)


@st.cache_data(show_spinner=False, max_entries=16, hash_funcs=HASHES)
def evaluation_problems(db: Database, evaluation_id: int) -> list[EvaluationProblemRow]:
    """Return the problems of an evaluation with the number of their answers by verdict."""
    return reads.evaluation_problems(db, evaluation_id)
