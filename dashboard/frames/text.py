"""Text of models and people as it is shown: whole, literal, with what cannot be seen made visible."""

import re

PREVIEW = 300
# C0 controls but tab and line feed, DEL and C1, direction marks and overrides, zero-width and line separators.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)


def visible(text: str) -> str:
    """Return `text` with every control, direction mark and lone surrogate written as ⟨U+XXXX⟩.

    All else stays as it is. A direction override would reorder what follows it; so it is named instead.
    """
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def preview(text: str, limit: int = PREVIEW) -> str:
    """Return the beginning of `text` on one line, at most `limit` characters, an ellipsis included."""
    start = visible(text[: 2 * limit]).replace("\n", " ↵ ").replace("\t", " ")
    whole = len(text) <= 2 * limit and len(start) <= limit
    return start if whole else start[: limit - 1] + "…"
