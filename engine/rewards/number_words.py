"""Numbers written as one word: `sixteen`, `forty-two`."""

_SMALL = {
    word: value
    for value, word in enumerate(
        """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen""".split()  # noqa: SIM905
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)  # noqa: SIM905
}


def read_number_word(word: str) -> int | None:
    """Return the number from 0 to 99 that a word names, else None."""
    word = word.lower()
    tens, dash, ones = word.partition("-")
    if dash:
        return _TENS[tens] + _SMALL[ones] if tens in _TENS and 0 < _SMALL.get(ones, 0) < 10 else None
    return _SMALL.get(word, _TENS.get(word))
