"""What a change does to a file, for people."""

from collections.abc import Iterator
from difflib import unified_diff

_NO_NEWLINE = "\\ No newline at end of file"


def difference(path: str, before: str | None, after: str | None) -> str:
    """A unified diff; empty if nothing changes."""
    if before == after:
        return ""
    old, new = (path if text is not None else "/dev/null" for text in (before, after))
    changed = unified_diff(_lines(before or ""), _lines(after or ""), old, new, lineterm="")
    return "\n".join(_marked(changed))


def _lines(text: str) -> list[str]:
    """With their ends, so that a last line without one differs from one with it."""
    return text.splitlines(keepends=True)


def _marked(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        bare = line.rstrip("\r\n")
        yield bare
        if number > 1 and not line.startswith("@@") and bare == line:
            yield _NO_NEWLINE
