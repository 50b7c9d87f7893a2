from engine.store.text import clean_text


def test_plain_text_and_emoji_are_kept_as_they_are():
    assert clean_text("3 + 4 = 7\n\t é 漢 😀") == "3 + 4 = 7\n\t é 漢 😀"


def test_a_lone_surrogate_becomes_the_replacement_character():
    assert clean_text("a\ud800b\udfffc") == "a\ufffdb\ufffdc"


def test_a_nul_becomes_its_visible_picture():
    assert clean_text("a\x00b") == "a\u2400b"


def test_nothing_stays_nothing():
    assert clean_text(None) is None
