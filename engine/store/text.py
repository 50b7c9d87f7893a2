"""Text as a model produces it, made fit for a text column."""

from typing import overload

_NUL_SHOWN = "\u2400"
_REPLACEMENT = "\ufffd"


@overload
def clean_text(text: str) -> str: ...
@overload
def clean_text(text: None) -> None: ...
def clean_text(text: str | None) -> str | None:
    """Return `text` with NUL as U+2400 and each lone surrogate as U+FFFD; every other character is kept.

    SQLite's own functions stop at a NUL and PostgreSQL refuses it; a lone surrogate has no UTF-8 form
    and would roll back the whole step. The token ids, which are the truth, are stored beside the text.
    """
    if text is None:
        return None
    if "\x00" in text:
        text = text.replace("\x00", _NUL_SHOWN)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(_REPLACEMENT if "\ud800" <= letter <= "\udfff" else letter for letter in text)
    return text
