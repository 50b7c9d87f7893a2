"""Text that was not written here, made safe for places that render Markdown."""

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:&@])")


def escape_markdown(text: str) -> str:
    """Return `text` so that labels, captions and notices show its very characters, on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
