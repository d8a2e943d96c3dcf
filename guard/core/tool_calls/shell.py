"""Split a shell command line into simple commands, as far as reading it without running it allows."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

_LONGEST = 20_000
_MOST_DEPTH = 3
_HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_SHELLS = ("sh", "bash", "zsh", "dash", "ksh")
_MARKS = frozenset("();|&\n")


class SimpleCommand(NamedTuple):
    words: tuple[str, ...]
    before: str
    """What stands between the command before and this one: `&&`, `||`, `;`, `|`, `&`, or nothing."""
    after: str


def split_commands(text: str, depth: int = 0) -> list[SimpleCommand]:
    """Return the simple commands in their order, also those inside `bash -c`; none if the text is no command line."""
    found: list[SimpleCommand] = []
    try:
        pieces = list(_pieces(_HERE.sub(r"\3", text[:_LONGEST])))
    except ValueError:
        return []
    before = ""
    for words, after in pieces:
        inner = _inner_command(words)
        if inner is not None and depth < _MOST_DEPTH:
            nested = split_commands(inner, depth + 1)
            found += _join(nested, before, after)
        elif words:
            found.append(SimpleCommand(words, before, after))
        before = after if words else before
    return found


def _pieces(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    is_comment = False
    for token in lexer:
        if token and _MARKS.issuperset(token):
            if token.strip("()"):
                yield tuple(words), _kind(token)
                words, is_comment = [], False
        elif token.startswith("#"):
            is_comment = True
        elif not is_comment:
            words.append(token)
    if words:
        yield tuple(words), ""


def _kind(mark: str) -> str:
    return next((kind for kind in ("&&", "||", "|", "&") if kind in mark), ";")


def _inner_command(words: tuple[str, ...]) -> str | None:
    if not words or words[0].rpartition("/")[2] not in _SHELLS:
        return None
    flags = [at for at, word in enumerate(words) if re.fullmatch(r"-[a-z]*c", word)]
    return words[flags[0] + 1] if flags and flags[0] + 1 < len(words) else None


def _join(nested: list[SimpleCommand], before: str, after: str) -> list[SimpleCommand]:
    if nested:
        nested[0] = nested[0]._replace(before=before)
        nested[-1] = nested[-1]._replace(after=after)
    return nested
