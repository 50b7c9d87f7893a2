import pytest

from dashboard.frames.numbers import metric_value, number, share
from dashboard.frames.text import preview, visible


def test_markup_stays_as_it_is() -> None:
    text = "$x$ **b** <script>alert(1)</script>\n[a](javascript:x)\t שלום 日本"
    assert visible(text) == text


def test_what_cannot_be_seen_is_named() -> None:
    assert visible("a\x00b\u202ec\ud800\r\u200b") == "a⟨U+0000⟩b⟨U+202E⟩c⟨U+D800⟩⟨U+000D⟩⟨U+200B⟩"


def test_previews_are_short_and_on_one_line() -> None:
    assert preview("a\nb") == "a ↵ b"
    assert preview("x" * 300) == "x" * 300
    assert preview("x" * 301) == "x" * 299 + "…"
    assert len(preview("\x00" * 5_000)) == 300


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "", "–"),
        (float("nan"), "", "NaN"),
        (float("-inf"), "", "−∞"),
        (0.746, "share", "74.6 %"),
        (1234567.0, "tokens", "1,234,567 tokens"),
        (0.12345678, "nats/token", "0.1235 nats/token"),
        (3 * 2**20, "bytes", "3 MiB"),
    ],
)
def test_numbers_have_their_unit(value, unit, text) -> None:
    assert number(value, unit) == text


def test_a_metric_brings_its_unit_and_a_missing_share_is_a_dash() -> None:
    assert metric_value("entropy", 0.5) == "0.5 nats/token"
    assert metric_value("unheard/of", 2.0) == "2"
    assert share(None) == share(float("nan")) == "–"
