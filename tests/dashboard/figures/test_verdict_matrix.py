from dashboard.figures.verdict_matrix import NAMES, matrix_figure
from engine.rewards.tally import VERDICTS

MATRIX = [[1200, 3, 0, 0], [28, 40, 0, 0], [0, 0, 0, 0], [0, 0, 0, 2]]


def test_the_names_are_those_of_the_verdicts_in_their_order() -> None:
    assert [name.replace(" ", "_") for name in NAMES] == list(VERDICTS)


def test_what_stayed_and_what_changed_are_two_traces_and_empty_fields_have_no_colour() -> None:
    traces = {trace.uid: trace.z for trace in matrix_figure(MATRIX).data}
    filled = {
        uid: {(row, column) for row in range(4) for column in range(4) if z[row][column] is not None}
        for uid, z in traces.items()
    }
    assert filled == {"same": {(0, 0), (1, 1), (3, 3)}, "changed": {(0, 1), (1, 0)}}


def test_the_colour_grows_with_the_count_and_three_among_thousands_are_seen() -> None:
    traces = {trace.uid: trace.z for trace in matrix_figure(MATRIX).data}
    assert traces["same"][0][0] == 1
    assert 0.15 < traces["changed"][0][1] < traces["changed"][1][0] < 1


def test_every_field_has_its_count() -> None:
    notes = {note.name: note.text for note in matrix_figure(MATRIX).layout.annotations}
    assert notes["correct→correct"] == "1,200"
    assert notes["wrong→correct"] == "28"
    assert notes["unreadable→wrong"] == "·"
    assert len(notes) == 16


def test_without_counts_it_says_so() -> None:
    figure = matrix_figure([[0] * 4] * 4)
    assert [note.text for note in figure.layout.annotations] == ["Nothing graded yet."]
