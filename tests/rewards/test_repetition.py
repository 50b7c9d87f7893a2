import pytest

from engine.rewards.repetition import repeated_share


@pytest.mark.parametrize(
    ("token_ids", "n", "share"),
    [
        ((1, 2, 3, 4), 2, 0.0),  # 12 23 34
        ((1, 2, 1, 2, 1), 2, 0.5),  # 12 21 12 21: two of four seen before
        ((7, 7, 7, 7), 1, 0.75),
        ((7, 7, 7, 7), 2, 2 / 3),
        ((1, 2, 3), 3, 0.0),
        ((1, 1), 3, 0.0),  # shorter than one n-gram
        ((), 1, 0.0),
    ],
)
def test_the_share_of_n_grams_seen_before(token_ids, n, share):
    assert repeated_share(token_ids, n) == pytest.approx(share)


def test_an_n_gram_has_at_least_one_token():
    with pytest.raises(ValueError, match="n=0 must be at least 1"):
        repeated_share((1, 2), 0)
