"""FinQA (Chen et al. 2021, arXiv:2109.00122) in its original schema: a question on one page of a filing.

A page is `pre_text` and `post_text` (sentences) around a `table` (rows of cells, the first of them the heads). The
question comes behind a context of one of four kinds:

- `gold`: the rows that the annotators marked (`qa.gold_inds`), worded as they have them
- `page`: every sentence and the whole table, cells apart by ` | ` (lines of dots and dashes alone left out)
- `retrieved`: the k rows of the page that BM25 finds for the question, in the page's order
- `none`
"""

from collections.abc import Sequence
from typing import Any, Literal

from engine.errors import TaskError
from engine.tasks.rows import Row, cell

Context = Literal["gold", "page", "retrieved", "none"]


def with_context(question: str, row: Row, kind: Context, *, k: int) -> str:
    """The question behind its context: `Context:`, one row a line, an empty line, `Question: …`; alone for `none`.

    Raises TaskError where the row lacks what the context is made of.
    """
    if kind == "none":
        return question
    if kind == "gold":
        lines = _marked(row)
    elif kind == "page":
        lines = [*_texts(row, "pre_text"), *(" | ".join(map(str, cells)) for cells in _table(row))]
        lines = [line for line in (*lines, *_texts(row, "post_text")) if _says_something(line)]
    else:
        lines = retrieve(question, page_rows(row), k)
    return "\n".join(["Context:", *lines, "", f"Question: {question}"])


def page_rows(row: Row) -> list[str]:
    """The sentences and table rows of a page in its order, each table row as a sentence; the heads are no row."""
    table = _table(row)
    rows = [_sentence(table[0], cells) for cells in table[1:]]
    return [line for line in (*_texts(row, "pre_text"), *rows, *_texts(row, "post_text")) if _says_something(line)]


def retrieve(question: str, rows: Sequence[str], k: int) -> list[str]:
    """The `k` rows that score best for `question` by BM25 (k1 = 1.5, b = 0.75, Lucene's form), in their own order.

    Of two that score the same the earlier is taken.
    """
    import bm25s

    words: Any = bm25s.tokenize([*rows, question], return_ids=False, show_progress=False)
    if k >= len(rows) or not any(words[:-1]):
        return list(rows[:k])
    index = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    index.index(words[:-1], show_progress=False)
    known = [word for word in words[-1] if word in index.vocab_dict]
    scores = index.get_scores(known) if known else [0.0] * len(rows)
    best = sorted(range(len(rows)), key=lambda place: (-float(scores[place]), place))[:k]
    return [rows[place] for place in sorted(best)]


def _marked(row: Row) -> list[str]:
    marked = cell(row, "qa.gold_inds", field="context")
    lines = [str(text) for text in marked.values() if text] if isinstance(marked, dict) else []
    if not lines:
        raise TaskError(
            f"task.context: row {row.get('id')} has no marked rows (qa.gold_inds), which context=gold is made of; set "
            "task.context to page, retrieved or none."
        )
    return lines


def _texts(row: Row, column: str) -> list[str]:
    return [str(line) for line in cell(row, column, field="context")]


def _table(row: Row) -> list[list[Any]]:
    table: list[list[Any]] = cell(row, "table", field="context")
    return table or [[]]


def _sentence(heads: Sequence[Any], cells: Sequence[Any]) -> str:
    """A table row as FinQA's annotators word it: `the 2014 of ( in thousands ) is 1486 ;`."""
    corner = f"{heads[0]} " if heads and str(heads[0]).strip() else ""
    name = cells[0] if cells else ""
    said = (f"the {name} of {head} is {value} ;" for head, value in zip(heads[1:], cells[1:], strict=False))
    return corner + " ".join(said)


def _says_something(line: str) -> bool:
    return any(character.isalnum() for character in line)
