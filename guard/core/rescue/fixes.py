"""Whether changes mend a fault or only the layout of a text. Both are said only where the text shows it."""

import re
from collections.abc import Sequence

from guard.core.rescue.change import MOST_TEXT, Changed, ChangedFile

_MOST_LINES = 60
_COMMENT = re.compile(
    r"\s*(?:#|//|/?\*|--|;|<!--|\"\"\")\s*(?P<text>.+)|.*?\s(?:#|//)\s(?P<behind>.+)"
)
_SAYS_FIX = re.compile(
    r"\b(?:fix(?:e[sd])?(?:\s+(?:for|the|a|an|bug|issue)\b|\s*:?\s*(?:#|gh-)\d)"
    r"|(?:bug|issue|regression)\s*(?:#|gh-)?\d+|regression\s+(?:test|in|of|from|:)|bugfix\b|hotfix\b)",
    re.IGNORECASE,
)
_LATER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
_TESTS_FIX = re.compile(
    r"(?:def|fn|func|fun|void|it|test|describe|should)\b.{0,40}?(?:regression|_issue_?\d|_bug|bugfix"
    r"|no_longer|no longer|does_not_crash|doesn't crash|does not crash)",
    re.IGNORECASE,
)
_NAMED_FIX = re.compile(r"(?:^|[/_.-])(?:regressions?|bugfix|hotfix|issue[_-]?\d+)(?:[/_.-]|$)")
_INDENT_COUNTS = re.compile(
    r".*(?:\.(?:py|pyi|pyx|ya?ml|coffee|haml|hs|fs|nim|pug|sass|slim|mk|md|rst|txt)|[Mm]akefile)"
)


def is_fix(pieces: Sequence[ChangedFile]) -> bool:
    """Whether a small change to code that was there says of itself, or by its tests, that it mends something."""
    texts = [one.change.added.decode(errors="replace").split("\n") for one in pieces]
    code = [one.place.role == "source" for one in pieces]
    if sum(len(lines) for lines, is_code in zip(texts, code, strict=True) if is_code) > _MOST_LINES:
        return False
    return any(
        _NAMED_FIX.search(one.place.path)
        or any(map(_TESTS_FIX.search if not is_code else _says_fix, _short(lines)))
        for one, lines, is_code in zip(pieces, texts, code, strict=True)
    )


def _short(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if len(line) <= 200]


def _says_fix(line: str) -> bool:
    comment = _COMMENT.match(line)
    text = (comment["text"] or comment["behind"]) if comment else ""
    return bool(text and _SAYS_FIX.search(text) and not _LATER.search(text))


def is_layout(change: Changed) -> bool:
    """Whether only blanks and line breaks differ, where they mean nothing."""
    if change.letter != "M" or not change.added or not change.removed:
        return False
    if max(len(change.added), len(change.removed)) >= MOST_TEXT:
        return False
    name = change.path.rpartition(b"/")[2].decode(errors="replace")
    bare = _bare_lines if _INDENT_COUNTS.fullmatch(name) else _bare
    return bare(change.added) == bare(change.removed)


def _bare(text: bytes) -> list[bytes]:
    return text.split()


def _bare_lines(text: bytes) -> list[bytes]:
    return [line.rstrip() for line in text.split(b"\n") if line.strip()]
