"""The words of a statement: each as it is compared, with the paths in it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from guard.core.claims.file_names import paths_in

_EDGES = " \t\"'`*_.,;:!?()[]{}<>|→—–-+✅✓✔❌"
_ARROWS = re.compile(r"->|=>|→|⇒")
_LINK = re.compile(r"\[([^\[\]]{0,200})\]\(([^()\s]{1,400})\)")
_CALLED = re.compile(r"[\w.]{1,80}\(\)")


class Word(NamedTuple):
    """One word."""

    plain: str
    """In lower case, without punctuation."""
    paths: tuple[str, ...]
    in_command: bool
    """Whether it stands in backticks with others, as a command does."""
    ends: str
    """What follows it: a comma or a colon, or nothing."""
    in_brackets: bool = False
    """Whether it is all that stands in brackets, as in `a.py (new)`."""


def words(text: str) -> Iterator[Word]:
    """The words of a statement, in order."""
    for number, part in enumerate(_unlinked(text).split("`")):
        quoted = number % 2 == 1
        several = quoted and len(part.split()) > 1
        for token in part.split():
            yield from _words(token, several)


def _unlinked(text: str) -> str:
    """A link tells its file twice, as its text and as its target: the text is enough if it names one."""
    return _ARROWS.sub(" ", _LINK.sub(_of_link, text))


def _of_link(link: re.Match[str]) -> str:
    named = any(paths_in(token) for token in link[1].split())
    return link[1] if named else f"{link[1]} {link[2]}"


def _words(token: str, in_command: bool) -> Iterator[Word]:
    if _CALLED.fullmatch(token.strip("`.,;:*")):
        yield Word("", (), in_command, "")
        return
    verb, opened, rest = token.partition("(")
    if opened and verb.isalpha() and paths_in(rest):
        yield Word(verb.lower(), (), in_command, "(")
        token = rest
    paths = tuple(paths_in(token))
    ends = token.rstrip("`*_)")[-1:]
    plain = token.strip(_EDGES).lower() or ("✓" if set(token) & set("✅✓✔") else "")
    bracketed = token.startswith("(") and token.rstrip(".,;:").endswith(")")
    yield Word(plain, paths, in_command, ends if ends in (",", ":") else "", bracketed)
