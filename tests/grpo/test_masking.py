import numpy as np
import pytest

from engine.grpo.masking import lengths_to_end, masked_mean, position_ids, response_mask

END, OTHER_END, PAD = 2, 3, 0
NAN = float("nan")


class TestMasking:
    def test_the_mask_covers_each_length_and_no_more(self, array):
        mask = response_mask(array([3, 1, 0], "int64"), 4)
        assert np.asarray(mask).tolist() == [[True, True, True, False], [True, False, False, False], [False] * 4]

    def test_a_row_that_is_not_kept_counts_nothing(self, array):
        mask = response_mask(array([3, 3], "int64"), 3, keep=array([True, False], "bool"))
        assert np.asarray(mask).tolist() == [[True] * 3, [False] * 3]

    @pytest.mark.parametrize(
        ("token_ids", "ends", "length"),
        [
            ([21, 22, END, PAD, PAD], [END], 3),  # the end token counts, padding does not
            ([21, 22, END, END, END], [END], 3),  # padded with the end token itself
            ([21, OTHER_END, 29, 29], [END, OTHER_END], 2),  # what follows the second of two end ids is gone
            ([21, OTHER_END, END, 29], [END, OTHER_END], 2),
            ([21, 22, 23], [END], 3),  # cut
            ([END, 22, 23], [END], 1),
        ],
    )
    def test_imported_tokens_reach_to_their_first_end_token(self, array, token_ids, ends, length):
        lengths = lengths_to_end(array([token_ids], "int64"), ends)
        assert np.asarray(lengths).tolist() == [length]
        mask = response_mask(lengths, len(token_ids))
        assert np.asarray(mask).sum() == length

    def test_a_cut_completion_can_be_masked_while_its_length_stays(self, array):
        token_ids = array([[21, 22, 23], [21, END, PAD]], "int64")
        lengths = lengths_to_end(token_ids, [END])
        mask = response_mask(lengths, 3, keep=array([False, True], "bool"))
        assert np.asarray(mask).tolist() == [[False] * 3, [True, True, False]]
        assert np.asarray(lengths).tolist() == [3, 2]

    def test_the_mean_of_nothing_is_zero(self, array):
        assert float(masked_mean(array([4, 5]), array([0, 0], "bool"))) == 0.0

    def test_a_masked_nan_does_not_leak(self, array):
        assert float(masked_mean(array([2, NAN, 6]), array([1, 0, 1], "bool"))) == 4.0

    def test_means_can_be_taken_by_row(self, array):
        values, mask = array([[2, 4, NAN], [NAN, NAN, NAN]]), array([[1, 1, 0], [0, 0, 0]], "bool")
        assert np.asarray(masked_mean(values, mask, axis=1)).tolist() == [3, 0]

    def test_positions_of_left_padded_rows_start_at_zero(self, array):
        positions = position_ids(array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], "int64"))
        assert np.asarray(positions)[0, 2:].tolist() == [0, 1, 2]
        assert np.asarray(positions)[1].tolist() == [0, 1, 2, 3, 4]
        assert np.asarray(positions).min() == 0
