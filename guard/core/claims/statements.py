"""Split a message into statements (headings, list items, sentences, lines of code) and statements into words."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from guard.core.claims.file_names import find_paths

Form = Literal["heading", "item", "plain", "code"]

_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_HEADING = re.compile(r"\s{0,8}(?:#{1,6}\s|\*\*[^*]{1,120}\*\*:?\s*$|__[^_]{1,120}__:?\s*$)")
_ITEM = re.compile(r"\s*(?:[-*+•●▪◦·⏺└⎿├│✓✔☑✅|]|\d{1,3}[.)]\s|\[[ xX]\])")
_MARKS = " \t-*+•●▪◦·⏺└⎿├│─#|>✓✔☑✅"
_NUMBER = re.compile(r"\d{1,3}[.)]\s+")
_END = re.compile(r"(?<![./])[.!?;][\"')*`_]{0,4}\s+")
_REACH = 60
"""So many characters before a hit are searched for a denial."""
_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "…": " ", "\u00a0": " "})


class Statement(NamedTuple):
    """One statement; `introduces` is True if a list or a block follows it."""

    text: str
    form: Form
    introduces: bool
    begins: bool
    """Whether the statement is the first of its line."""


def split_statements(message: str) -> Iterator[Statement]:
    in_code = False
    for line in message.translate(_APOSTROPHES).splitlines():
        if _FENCE.match(line):
            in_code = not in_code
        elif in_code:
            yield Statement(line.strip(), "code", False, True)
        elif line.strip():
            yield from _split_line(line)


def _split_line(line: str) -> Iterator[Statement]:
    heading = _HEADING.match(line) is not None
    form: Form = "heading" if heading else "item" if _ITEM.match(line) else "plain"
    bare = line.lstrip(_MARKS).rstrip("|*# \t")
    text = _strip_number(bare) if form == "item" else bare
    introduces = heading or text.rstrip("* _").endswith(":")
    for number, part in enumerate(_split_sentences(text)):
        yield Statement(part, form, introduces, number == 0)


def _strip_number(text: str) -> str:
    number = _NUMBER.match(text)
    return text[number.end() :] if number else text


def _split_sentences(text: str) -> Iterator[str]:
    begin = 0
    for end in _END.finditer(text):
        yield text[begin : end.end()].strip()
        begin = end.end()
    if text[begin:].strip():
        yield text[begin:].strip()


def is_denied(text: str, hit: re.Match[str], denial: re.Pattern[str]) -> bool:
    return denial.search(text[max(0, hit.start() - _REACH) : hit.start()]) is not None


_EDGES = " \t\"'`*_.,;:!?()[]{}<>|→—–-+✅✓✔❌"
_ARROWS = re.compile(r"->|=>|→|⇒")
_LINK = re.compile(r"\[([^\[\]]{0,200})\]\(([^()\s]{1,400})\)")
_CALLED = re.compile(r"[\w.]{1,80}\(\)")


class Word(NamedTuple):
    plain: str
    """The word in lower case, without punctuation."""
    paths: tuple[str, ...]
    in_command: bool
    """Whether it stands in backticks with other words, as a command does."""
    ends: str
    """The comma or colon that follows it, or nothing."""
    in_brackets: bool = False
    """Whether it is the only word in brackets, as in `a.py (new)`."""


def split_words(text: str) -> Iterator[Word]:
    for number, part in enumerate(_replace_links(text).split("`")):
        quoted = number % 2 == 1
        several = quoted and len(part.split()) > 1
        for token in part.split():
            yield from _split_token(token, several)


def _replace_links(text: str) -> str:
    # A link names its file twice, in its text and in its target: the text is enough if it names one.
    return _ARROWS.sub(" ", _LINK.sub(_link_text, text))


def _link_text(link: re.Match[str]) -> str:
    named = any(find_paths(token) for token in link[1].split())
    return link[1] if named else f"{link[1]} {link[2]}"


def _split_token(token: str, in_command: bool) -> Iterator[Word]:
    if _CALLED.fullmatch(token.strip("`.,;:*")):
        yield Word("", (), in_command, "")
        return
    verb, opened, rest = token.partition("(")
    if opened and verb.isalpha() and find_paths(rest):
        yield Word(verb.lower(), (), in_command, "(")
        token = rest
    paths = tuple(find_paths(token))
    ends = token.rstrip("`*_)")[-1:]
    plain = token.strip(_EDGES).lower() or ("✓" if set(token) & set("✅✓✔") else "")
    bracketed = token.startswith("(") and token.rstrip(".,;:").endswith(")")
    yield Word(plain, paths, in_command, ends if ends in (",", ":") else "", bracketed)
