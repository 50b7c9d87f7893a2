"""Numbers written in words: `sixteen`, `forty-two`, `one hundred and five`."""

from collections.abc import Container

from text_to_num import text2num

MOST_WORDS = 12


def read_number_words(text: str) -> int | None:
    """Return the number that English words name, else None."""
    try:
        return int(text2num(text, "en"))
    except ValueError:
        return None


def leading_number_words(text: str, *, scales: Container[str]) -> tuple[int, str] | None:
    """Return the number that the longest run of first words names, and what follows; None where they name none.

    One of `scales` at its end belongs to what follows: `five million` is 5 and `million`.
    """
    words = text.split()
    for count in range(min(len(words), MOST_WORDS), 0, -1):
        named = count - 1 if count > 1 and words[count - 1].lower() in scales else count
        value = read_number_words(" ".join(words[:named]))
        if value is not None:
            return value, " ".join(words[named:])
    return None
