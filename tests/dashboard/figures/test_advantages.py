from dashboard.figures.advantages import DOWN, UP, advantages_figure


def test_bars_are_signed_and_coloured_by_direction() -> None:
    (bars,) = advantages_figure([1.5, -0.5, 0.0], ["1", "2", "3"]).data
    assert bars.x == (1.5, -0.5, 0.0)
    assert bars.marker.color == (UP, DOWN, DOWN)
    assert bars.text == ("+1.500", "-0.500", "0")


def test_a_missing_advantage_has_no_bar_and_says_so() -> None:
    figure = advantages_figure([None, 0.5], ["1", "2"])
    assert figure.data[0].x[0] is None
    assert [note.text for note in figure.layout.annotations] == ["no advantage"]


def test_an_empty_group_says_so() -> None:
    figure = advantages_figure([], [])
    assert len(figure.data) == 0
    assert figure.layout.annotations[0].text == "This group has no completions."
