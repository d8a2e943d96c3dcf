"""A message as the statements in it: headings, items of lists, sentences, and lines of code blocks."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Form = Literal["heading", "item", "plain", "code"]

_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_HEADING = re.compile(r"\s{0,8}(?:#{1,6}\s|\*\*[^*]{1,120}\*\*:?\s*$|__[^_]{1,120}__:?\s*$)")
_ITEM = re.compile(r"\s*(?:[-*+•●▪◦·⏺└⎿├│✓✔☑✅|]|\d{1,3}[.)]\s|\[[ xX]\])")
_MARKS = " \t-*+•●▪◦·⏺└⎿├│─#|>✓✔☑✅"
_NUMBER = re.compile(r"\d{1,3}[.)]\s+")
_END = re.compile(r"(?<![./])[.!?;][\"')*`_]{0,4}\s+")
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": " ", "\u00a0": " "})


class Statement(NamedTuple):
    """One statement; `introduces` if a list or a block is to follow it."""

    text: str
    form: Form
    introduces: bool
    begins: bool
    """Whether a line begins with it."""


def statements(message: str) -> Iterator[Statement]:
    """The statements of a message, in order."""
    in_code = False
    for line in message.translate(_APOSTROPHES).splitlines():
        if _FENCE.match(line):
            in_code = not in_code
        elif in_code:
            yield Statement(line.strip(), "code", False, True)
        elif line.strip():
            yield from _of_line(line)


def _of_line(line: str) -> Iterator[Statement]:
    heading = _HEADING.match(line) is not None
    form: Form = "heading" if heading else "item" if _ITEM.match(line) else "plain"
    bare = line.lstrip(_MARKS).rstrip("|*# \t")
    text = _without_number(bare) if form == "item" else bare
    introduces = heading or text.rstrip("* _").endswith(":")
    for number, part in enumerate(_sentences(text)):
        yield Statement(part, form, introduces, number == 0)


def _without_number(text: str) -> str:
    number = _NUMBER.match(text)
    return text[number.end() :] if number else text


def _sentences(text: str) -> Iterator[str]:
    begin = 0
    for end in _END.finditer(text):
        yield text[begin : end.end()].strip()
        begin = end.end()
    if text[begin:].strip():
        yield text[begin:].strip()
