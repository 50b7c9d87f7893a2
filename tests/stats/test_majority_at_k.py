import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.stats.majority_at_k import Vote, majority_at_k, majority_right

RIGHT, NOTHING = Vote("12", True), Vote(None, False)


def wrong(answer: str) -> Vote:
    return Vote(answer, False)


def test_two_right_answers_outvote_one_wrong():
    assert majority_right([RIGHT, RIGHT, wrong("7")]) == 1.0


def test_two_equal_wrong_answers_outvote_one_right_and_two_different_ones_do_not():
    assert majority_right([RIGHT, wrong("7"), wrong(" 7 ")]) == 0.0
    assert majority_right([RIGHT, RIGHT, wrong("7"), wrong("8")]) == 1.0


def test_right_answers_are_one_answer_however_they_are_written():
    assert majority_right([Vote("1/2", True), Vote("0.5", True), wrong("3"), wrong("7"), wrong("7")]) == 0.5
    assert majority_right([Vote("1/2", True), Vote("0.5", True), Vote(None, True), wrong("7"), wrong("7")]) == 1.0


def test_an_answer_whose_form_alone_is_wrong_votes_with_the_right_ones_of_its_text():
    assert majority_right([RIGHT, wrong(" 12 "), wrong("7")]) == 1.0
    assert majority_right([wrong("12"), wrong("12"), wrong("7")]) == 0.0


def test_a_tie_counts_as_the_share_of_the_tied_answers_that_is_right():
    assert majority_right([RIGHT, wrong("7"), wrong("8")]) == pytest.approx(1 / 3)
    assert majority_right([RIGHT, wrong("7"), wrong("7"), wrong("8"), wrong("8")]) == 0.0


def test_an_answer_that_was_not_read_is_no_vote():
    assert majority_right([RIGHT, NOTHING, NOTHING]) == 1.0
    assert majority_right([NOTHING, NOTHING]) == 0.0


def test_the_share_is_the_mean_over_problems():
    assert majority_at_k([[RIGHT], [wrong("7")], [RIGHT, wrong("7")]]) == 0.5


def test_no_problem_has_no_share():
    with pytest.raises(ValueError, match="needs at least one"):
        majority_at_k([])


votes = st.lists(st.sampled_from([RIGHT, NOTHING, wrong("12"), wrong("a"), wrong("b"), wrong("c")]), max_size=8)


@given(votes)
def test_it_is_what_a_draw_among_the_most_frequent_gives_on_average(given_votes):
    united = {"12"} if RIGHT in given_votes else set()
    words = ["right" if vote.correct or vote.answer in united else vote.answer for vote in given_votes]
    read = [word for word in words if word is not None]
    winners = [word for word in set(read) if read.count(word) == max(map(read.count, read))]
    expected = sum(word == "right" for word in winners) / len(winners) if winners else 0.0
    assert majority_right(given_votes) == pytest.approx(expected)


@given(votes)
def test_one_more_right_answer_never_hurts(given_votes):
    assert majority_right([*given_votes, RIGHT]) >= majority_right(given_votes)
