import pytest

from engine.errors import TaskError
from engine.tasks.finqa import page_rows, retrieve, with_context

ROW = {
    "id": "ACME/2014/page_7.pdf-1",
    "filename": "ACME/2014/page_7.pdf",
    "pre_text": ["sales of anvils rose .", ".", "costs are shown below ."],
    "table": [["( in millions )", "2014", "2013"], ["anvil sales", "$ 40", "$ 32"], ["rocket costs", "9", "7"]],
    "post_text": ["the company was founded in 1949 ."],
    "qa": {"question": "how much did anvil sales grow?", "gold_inds": {"table_1": "anvil sales is 40 and 32 ;"}},
}
QUESTION = ROW["qa"]["question"]


def test_the_gold_context_has_the_marked_rows_as_the_annotators_word_them():
    assert with_context(QUESTION, ROW, "gold", k=5) == (
        "Context:\nanvil sales is 40 and 32 ;\n\nQuestion: how much did anvil sales grow?"
    )


def test_the_page_has_every_sentence_and_the_table_where_it_stands():
    assert with_context(QUESTION, ROW, "page", k=5) == (
        "Context:\nsales of anvils rose .\ncosts are shown below .\n( in millions ) | 2014 | 2013\n"
        "anvil sales | $ 40 | $ 32\nrocket costs | 9 | 7\nthe company was founded in 1949 .\n\n"
        "Question: how much did anvil sales grow?"
    )


def test_without_a_context_the_question_stands_alone():
    assert with_context(QUESTION, ROW, "none", k=5) == QUESTION


def test_a_table_row_is_retrieved_as_a_sentence_with_its_heads():
    assert page_rows(ROW) == [
        "sales of anvils rose .",
        "costs are shown below .",
        "( in millions ) the anvil sales of 2014 is $ 40 ; the anvil sales of 2013 is $ 32 ;",
        "( in millions ) the rocket costs of 2014 is 9 ; the rocket costs of 2013 is 7 ;",
        "the company was founded in 1949 .",
    ]


def test_the_retrieved_rows_are_those_with_the_words_of_the_question_in_the_order_of_the_page():
    assert with_context(QUESTION, ROW, "retrieved", k=2).splitlines()[1:3] == [
        "sales of anvils rose .",
        "( in millions ) the anvil sales of 2014 is $ 40 ; the anvil sales of 2013 is $ 32 ;",
    ]


def test_a_rare_word_counts_more_than_a_frequent_one():
    rows = ["profit rose", "profit fell", "profit stayed", "dividends fell"]
    assert retrieve("profit or dividends?", rows, 1) == ["dividends fell"]


def test_of_rows_that_score_the_same_the_earlier_is_taken():
    assert retrieve("profit?", ["profit one", "profit two", "profit six"], 2) == ["profit one", "profit two"]


def test_a_question_with_no_word_of_the_page_takes_its_first_rows():
    assert retrieve("zebras?", ["profit rose", "costs fell", "cash stayed"], 2) == ["profit rose", "costs fell"]


def test_a_page_of_fewer_rows_gives_them_all():
    assert retrieve("profit?", ["costs fell", "profit rose"], 5) == ["costs fell", "profit rose"]


def test_a_page_without_a_table_still_has_its_sentences():
    row = {**ROW, "table": []}
    assert page_rows(row) == ["sales of anvils rose .", "costs are shown below .", "the company was founded in 1949 ."]
    assert "Context:\nsales of anvils rose .\ncosts are shown below .\nthe company" in with_context(
        QUESTION, row, "page", k=5
    )


def test_a_row_without_marks_is_refused_with_the_other_contexts():
    row = {**ROW, "qa": {**ROW["qa"], "gold_inds": {}}}
    with pytest.raises(TaskError, match=r"^task\.context: row ACME/2014/page_7\.pdf-1 has no marked rows .*; set"):
        with_context(QUESTION, row, "gold", k=5)


def test_a_row_without_a_page_is_refused_by_its_column():
    with pytest.raises(TaskError, match=r"^task\.context: pre_text is not a column of the data, which has id, prompt"):
        with_context(QUESTION, {"id": "a", "prompt": "Context: …"}, "page", k=5)
