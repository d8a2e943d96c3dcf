"""Take lines that a task added out of a file to which others have added since."""

from collections.abc import Sequence
from difflib import SequenceMatcher


def without_added_lines(before: bytes, after: bytes, now: bytes) -> bytes | None:
    """Return the file as it is now without the rows of lines that were added; None if they are not there as they were.

    Also None if the change took lines out, because nothing tells where they belong by now.
    """
    old, new, left = (text.splitlines(keepends=True) for text in (before, after, now))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, _i, _j, begin, end in reversed(matcher.get_opcodes()):
        if kind == "equal":
            continue
        if kind != "insert":
            return None
        places = _find_rows(left, new[begin:end])
        if len(places) != 1:
            return None
        del left[places[0] : places[0] + end - begin]
    return b"".join(left)


def _find_rows(lines: Sequence[bytes], rows: Sequence[bytes]) -> list[int]:
    count = len(rows)
    return [
        start for start in range(len(lines) - count + 1) if lines[start : start + count] == rows
    ]
