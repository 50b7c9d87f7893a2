"""Finds the answer in a completion. No rule here reads or changes what the answer says."""

import re

_ANSWER = re.compile(r"<answer>((?:(?!</?answer>).)*)</answer>", re.DOTALL)
_HASHES = re.compile(r"####+[ \t]*([^\n]*)")
_ANSWER_LINE = re.compile(r"\banswer\b[ \t]*[*_]*[ \t]*:[ \t]*[*_]*[ \t]*([^\n]*)", re.IGNORECASE)
_ANSWER_IS = re.compile(r"\banswer[ \t]+is\b[ \t]*:?[ \t]*([^\n]*)", re.IGNORECASE)
_BRACES = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)


def answer_tag(text: str) -> str | None:
    """The text inside the last complete `<answer>…</answer>`, spaces at its ends removed; None if there is none."""
    found = _ANSWER.findall(text)
    return found[-1].strip() if found else None


def boxed(text: str) -> str | None:
    r"""The text inside the complete `\boxed{…}` or `\fbox{…}` that starts last, without spaces around; None if none is.

    Braces nest; `\{` and `\}` do not count. A box that never closes is passed over, so a complete one before
    it is found. One pass, whatever the text.
    """
    answer: str | None = None
    answer_start = -1
    open_braces: list[int | None] = []  # where the content of a box starts; None for any other brace
    for match in _BRACES.finditer(text):
        token = match.group()
        if token == "{":
            open_braces.append(None)
        elif token == "}":
            start = open_braces.pop() if open_braces else None
            if start is not None and start > answer_start:
                answer, answer_start = text[start : match.start()].strip(), start
        elif token.endswith("{") and token != "\\{":
            open_braces.append(match.end())
    return answer


def hash_line(text: str) -> str | None:
    """The rest of the last line with `####` and something behind it; None if there is no `####`.

    Where no such line has anything, the line after the last. Spaces and further signs `#` at the ends are removed.
    """
    return _last_line(_HASHES, text)


def answer_line(text: str) -> str | None:
    """The last complete `<answer>`; else the line after the last "Answer:"; else after the last "answer is"."""
    for found in (answer_tag(text), _last_line(_ANSWER_LINE, text), _last_line(_ANSWER_IS, text)):
        if found is not None:
            return found
    return None


def whole(text: str) -> str | None:
    """The whole text, white space at its ends removed; None if there is nothing else."""
    return text.strip() or None


def _last_line(marker: re.Pattern[str], text: str) -> str | None:
    text = text.replace("\r\n", "\n")
    found = list(marker.finditer(text))
    if not found:
        return None
    lines: list[str] = [each.group(1).strip(" \t\r#") for each in found]
    for line in reversed(lines):
        if line:
            return line
    return text[found[-1].end() :].strip().partition("\n")[0].strip(" \t\r#")
