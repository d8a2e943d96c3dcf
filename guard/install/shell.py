"""A line of a shell, as far as it takes to find the calls of guard in it."""

import re
import shlex
from collections.abc import Iterator
from itertools import pairwise

OWN_NAMES = ("guard", "completion-guard")
_MOST_DEPTH = 3
_PART = re.compile(
    r"""(?P<quoted>\\. | '[^']*' | "(?:\\.|[^"\\])*")
    |(?P<comment>(?<![^\s;&|()])\#[^\n]*)
    |(?P<operator>\$\( | [;&|<>()`\r\n])
    |.""",
    re.DOTALL | re.VERBOSE,
)
_INNER = re.compile(r"-[a-z]*c")


def commands(line: str) -> list[str]:
    """The line, cut at every operator that is not quoted, and without comments."""
    found = [""]
    for part in _PART.finditer(line):
        if part.lastgroup == "operator":
            found.append("")
        elif part.lastgroup != "comment":
            found[-1] += part[0]
    return found


def words(command: str) -> list[str]:
    """The words of one command; none if its quotes do not fit."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def is_guard(word: str) -> bool:
    """Whether a word names guard's program, wherever it lies."""
    return word.rpartition("/")[2] in OWN_NAMES


def events(line: str, agent: str, depth: int = 0) -> Iterator[str]:
    """The events of an agent that a line calls guard's hook for, also through `sh -c`."""
    for command in commands(line):
        found = words(command)
        for place in range(1, len(found) - 2):
            if found[place : place + 2] == ["hook", agent] and any(map(is_guard, found[:place])):
                yield found[place + 2]
        for option, inner in pairwise(found):
            if depth < _MOST_DEPTH and _INNER.fullmatch(option):
                yield from events(inner, agent, depth + 1)
