import pytest

from engine.rollout.stops import DECODING, StopStrings


@pytest.fixture(scope="module")
def answer(tokenizer):
    return StopStrings(tokenizer, ["</answer>"], len(tokenizer))


def test_only_tokens_that_begin_with_an_ending_or_hold_the_string_can_complete_it(tokenizer, answer):
    completing = {tokenizer.decode([token]) for token, may in enumerate(answer.may_complete.tolist()) if may}
    assert completing == {">", "wer>XY", "</answer>", "P</answer>Q</answer>"}


def test_nothing_can_complete_no_string(tokenizer):
    assert not StopStrings(tokenizer, [], len(tokenizer)).may_complete.any()


def test_the_string_is_found_only_when_its_last_character_is_there(tokenizer, answer):
    token_ids = tokenizer.encode("7 < </ans") + tokenizer.encode("wer>XY")
    assert answer.completed_by_last(token_ids[:-1]) is None
    assert answer.completed_by_last(token_ids) == "</answer>"
    assert answer.completed_by_last([*token_ids, *tokenizer.encode(">")]) is None


def test_the_text_is_cut_after_the_string(tokenizer, answer):
    def cut(token_ids):
        return answer.cut(token_ids, tokenizer.decode(token_ids, **DECODING), "</answer>")

    assert cut([*tokenizer.encode("7</ans"), *tokenizer.encode("wer>XY")]) == "7</answer>"
    assert cut(tokenizer.encode("P</answer>Q</answer>")) == "P</answer>"
    # The first one came too early to count (min_tokens); the cut is at the one that the last token completed.
    assert cut(tokenizer.encode("a</answer>b</answer>")) == "a</answer>b</answer>"


def test_of_several_strings_the_one_that_ends_first_counts_and_then_the_longest(tokenizer):
    def stop(*strings):
        return StopStrings(tokenizer, strings, len(tokenizer)).completed_by_last(tokenizer.encode("wer>XY"))

    assert stop("XY", "er>") == "er>"
    assert stop("r>", "wer>") == "wer>"


def test_a_string_outside_ascii_may_end_within_the_bytes_of_a_character(tokenizer):
    stops = StopStrings(tokenizer, ["終"], len(tokenizer))
    token_ids = tokenizer.encode("a終")
    assert len(token_ids) == 4
    assert bool(stops.may_complete[token_ids[-1]])
    assert stops.completed_by_last(token_ids[:-1]) is None
    assert stops.completed_by_last(token_ids) == "終"
    assert stops.cut(token_ids, "a終", "終") == "a終"


def test_a_long_past_is_not_decoded_again(tokenizer, answer):
    assert answer.completed_by_last(tokenizer.encode("x" * 500 + "</answer>")) == "</answer>"
    assert answer.completed_by_last(tokenizer.encode("</answer>" + "x" * 500 + ">")) is None
