"""One spelling for the many ways of writing one thing. What an answer says is not changed here."""

import re

from engine.rewards import extraction

# A run of words set as text (`\text{ miles}`) stands between these two, so that `5\text{m}` is not 5 times m.
TEXT_OPEN, TEXT_CLOSE = "\ue000", "\ue001"
_MARKS = re.compile(f"[{TEXT_OPEN}{TEXT_CLOSE}]")

_SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻"
_PLAIN_SUPERSCRIPTS = str.maketrans(_SUPERSCRIPTS, "0123456789+-")
_VULGAR = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅖": "2/5", "⅗": "3/5", "⅘": "4/5",
    "⅙": "1/6", "⅚": "5/6", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_SIGNS = str.maketrans(
    dict.fromkeys("−–‐‑﹣－", "-")
    | dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad")  # of no width
    | dict.fromkeys("\u2009\u202f\u2008", r"\,")  # thin spaces
    | dict.fromkeys("\u00a0\u2007\u3000\t\r\n\f\v", " ")
    | dict(zip("０１２３４５６７８９", "0123456789", strict=True))
    | {
        "＋": "+", "＝": "=", "％": "%", "，": ",", "．": ".", "。": ".", "；": ";", "（": "(", "）": ")", "：": ":",
        "⁄": "/", "∕": "/", "∗": "*", "×": r"\times ", "·": r"\cdot ", "⋅": r"\cdot ", "÷": r"\div ", "°": r"^\circ ",
        "π": r"\pi ", "∞": r"\infty ", "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "±": r"\pm ",
        "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "∅": r"\emptyset ", "θ": r"\theta ", "“": '"', "”": '"', "’": "'",
    }
)  # fmt: skip

_TEXT = re.compile(r"\\(text(?:normal|rm|bf|it|sf)?|mbox|hbox|mathrm|mathbf|mathit|mathsf|bold|rm)\s*\{([^{}]*)\}")
_ORDINAL = r"(?:\\(?:text|mathrm|rm)\s*\{\s*)?(st|nd|rd|th)\s*\}?"
_LEFT_RIGHT = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?)(?![a-zA-Z])\s*\.?")
_IGNORED = re.compile(
    r"\\(?:(?:text)?color\s*(?:\[[^\]]*\]\s*)?\{[^{}]*\}|displaystyle|textstyle|phantom\s*(?:\{[^{}]*\}|\S)|limits|!)"
)
_SPACES = re.compile(r"(?<!\\)\\(?:[,;: ]|q?quad(?![a-zA-Z]))|(?<!\\)~")
_BOLD = re.compile(r"(?<![\w)}\]])(\*\*|__)\s*([^*_]+?)\s*\1(?![\w({\[])")
_LEAD_IN = re.compile(
    rf"{TEXT_OPEN}?(?:(?:so|thus|hence|therefore)[ ,]+)?(?:(?:the|my|our)\s+)?(?:(?:final|correct)\s+)?"
    rf"(?:answer|result|solution)\s*(?:is\s*:?|are\s*:?|:|=|equals)\s*{TEXT_CLOSE}?\s*|=\s*"
    r"|(?:\\(?:thick)?approx(?![a-z])|approximately|approx\.|about|roughly|~)\s*",
    re.IGNORECASE,
)
_WRAPPERS = (("\\(", "\\)"), ("\\[", "\\]"), *((mark, mark) for mark in ("$$", "$", "**", "__", "*", "_", "`", '"')))
_DEGREES = re.compile(
    r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z])|\\degree(?![a-zA-Z]))|\\degree(?![a-zA-Z])",
)
_ENDS = re.compile(
    r"(?:\s|\\\\|\\$|<\|[^<>|]*\|>|</s>|<eos>|(?<!\\)\\[,;: ]|[.,;:])+$"
    r"|\s+is (?:the|my|our) (?:final |correct )?answer\W*$"
)


def plain(text: str) -> str:
    r"""Return `text` in the one spelling that is read further on.

    Unicode signs become LaTeX or ASCII, wrappers (`$…$`, `**…**`, `\(…\)`, `\boxed{…}`), lead-ins ("The answer is"),
    and full stops at the end go, `\dfrac` is `\frac`, spaces are single. Of several boxes the last is taken.
    """
    text = _unwrap(_signs(text))
    text = _commands(text)
    text = _unwrap(text)
    return re.sub(r"\s+", " ", text).strip()


def key(text: str) -> str:
    """Return plain `text` without all that has no meaning of its own: equal keys are the same answer."""
    text = re.sub(rf"[\s{TEXT_OPEN}{TEXT_CLOSE}]", "", text)
    return re.sub(r"\{([0-9a-zA-Z])\}", r"\1", text)


def without_marks(text: str, instead: str = "") -> str:
    """Return `text` without the marks of what was set as text."""
    return _MARKS.sub(instead, text)


def _signs(text: str) -> str:
    for sign, fraction in _VULGAR.items():
        text = re.sub(rf"(?<=[0-9])\s*{sign}|{sign}", f" {fraction}", text)
    text = re.sub(f"[{_SUPERSCRIPTS}]+", lambda found: f"^{{{found.group().translate(_PLAIN_SUPERSCRIPTS)}}}", text)
    text = re.sub(r"√\s*(?:\(([^()]*)\)|([0-9]+|[a-zA-Z]))", r"\\sqrt{\1\2}", text)
    return text.translate(_SIGNS)


def _unwrap(text: str) -> str:
    """Return `text` without spaces, wrappers, boxes, lead-ins and full stops around it."""
    while True:
        bare = text.strip()
        if "\\boxed" in bare and (content := extraction.boxed(bare)) is not None:
            bare = content
        if len(bare) > 1:
            bare = _ENDS.sub("", bare) or bare
            if bare.endswith("!") and re.search(r"[a-z]{2}!$", bare):
                bare = bare[:-1]
        for opening, closing in _WRAPPERS:
            inner = bare[len(opening) : -len(closing)]
            enclosed = len(bare) > len(opening + closing) and bare.startswith(opening) and bare.endswith(closing)
            if enclosed and opening not in inner:
                bare = inner
        for mark in ("**", "__"):  # half of a pair, where the other half stands before what was found
            if len(bare) > 2 and bare.count(mark) == 1 and bare.endswith(mark):
                bare = bare[:-2]
        if (lead := _LEAD_IN.match(bare)) and lead.end() < len(bare):
            bare = bare[lead.end() :]
            if bare.count(TEXT_OPEN) != bare.count(TEXT_CLOSE):
                bare = without_marks(bare)
        if bare == text:
            return text
        text = bare


def _commands(text: str) -> str:
    text = _BOLD.sub(r"\2", text).replace("**", "^")
    if len(re.findall(r"(?<!\\)\$", text)) % 2 == 0:  # an odd one is a price
        text = re.sub(r"(?<!\\)\$", "", text)
    text = re.sub(r"\\\(|\\\)", "", text).replace("{,}", ",")
    text = re.sub(r"(?<!\\)\\([$%])", r"\1", text)
    text = re.sub(r",\s*\\!\s*", ",", text)
    text = re.sub(r"(?<=[0-9])\\,(?=[0-9]{3}(?![0-9]))", ",", text)
    text = _SPACES.sub(" ", _IGNORED.sub("", _LEFT_RIGHT.sub("", text)))
    text = re.sub(r"\\[dtc]frac(?![a-zA-Z])", r"\\frac", text)
    text = re.sub(r"\\frac\s*([0-9])\s*([0-9])", r"\\frac{\1}{\2}", text)
    text = re.sub(r"\\frac\s*([0-9])\s*\{", r"\\frac{\1}{", text)
    text = re.sub(r"\\frac\s*(\{[^{}]*\})\s*([0-9a-zA-Z])", r"\\frac\1{\2}", text)
    text = re.sub(r"\\frac\s*(\\[a-zA-Z]+)\s*([0-9a-zA-Z])", r"\\frac{\1}{\2}", text)
    text = re.sub(rf"(?<=[0-9])\s*\^\s*\{{\s*{_ORDINAL}\s*\}}", r"\1", text)
    text = re.sub(r"\\[dt]?binom\s*([0-9])\s*([0-9])", r"\\binom{\1}{\2}", text)
    text = re.sub(r"\{([^{}]*)\\choose(?![a-zA-Z])([^{}]*)\}", r"\\binom{\1}{\2}", text)
    text = re.sub(r"\\sqrt\s*([0-9a-zA-Z])", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\a-zA-Z])pi(?![a-zA-Z])", r"\\pi ", text)
    text = re.sub(r"(?<![\\a-zA-Z])(?:inf|infinity)(?![a-zA-Z])", r"\\infty ", text, flags=re.IGNORECASE)
    text = re.sub(r"\\(le|ge|ne)q(?![a-zA-Z])", r"\\\1 ", text).replace("<=", r"\le ").replace(">=", r"\ge ")
    text = re.sub(r"\\varnothing(?![a-zA-Z])", r"\\emptyset", text)
    text = _DEGREES.sub(_text(" degrees"), text)
    return _TEXT.sub(_set_as_text, text)


def _set_as_text(found: re.Match[str]) -> str:
    """Return what was set as text, marked as such unless it is a number, a letter of its own, or joins two answers."""
    command, content = found.groups()
    word = content.strip(" ,.").lower()
    if word in ("and", "or"):
        return f" {content} "
    if not word or re.fullmatch(r"[0-9.,/]+", word):
        return content
    follows_number = re.search(r"[0-9})]\s*$", found.string[: found.start()]) is not None
    if len(content) == 1 and (command in ("mathbf", "mathit", "bold") or not follows_number):
        return content
    return _text(content)


def _text(content: str) -> str:
    return TEXT_OPEN + content + TEXT_CLOSE
