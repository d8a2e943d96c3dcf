"""Ask git about many paths at once, so that a path which git refuses to judge does not spoil the answer for the others."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

from guard.core.base.first_use import dataclass
from guard.errors import RepositoryProblem
from guard.git.obstacles import GitObstacle

_MOST_QUESTIONS = 64
_NONE_IGNORED = 1


def ask_by_parts(
    ask: Callable[[Sequence[bytes]], bytes], paths: Sequence[bytes], refused: dict[bytes, str]
) -> Iterator[bytes]:
    """Yield git's answers about all these paths: one if git can answer at once, else one for each part of them.

    Paths that git refuses to judge go into `refused`, with its message.
    """
    waiting = [paths] if paths else []
    for _ in range(_MOST_QUESTIONS):
        if not waiting:
            return
        part = waiting.pop()
        try:
            answer = ask(part)
        except GitObstacle:
            raise  # It is about the repository, not about a path.
        except RepositoryProblem as error:
            middle = len(part) // 2
            if middle:
                waiting += [part[middle:], part[:middle]]
            else:
                refused[part[0]] = error.message
        else:
            yield answer
    for part in waiting:
        refused.update(dict.fromkeys(part, "git refused too many questions"))


class IgnoreRule(NamedTuple):
    file: bytes
    pattern: bytes


@dataclass(frozen=True)
class IgnoredPaths:
    """Which of the paths that git was asked about match an ignore rule."""

    rules: dict[bytes, IgnoreRule] = field(default_factory=dict)
    """The ignored ones, each with the rule that decides."""
    refused: dict[bytes, str] = field(default_factory=dict)
    """Those that git refuses to judge, each with its message."""


def find_ignored_paths(
    ask: Callable[..., bytes], paths: Iterable[bytes], *, with_index: bool = False
) -> IgnoredPaths:
    """Ask for the rules that name these paths; `ask` runs git with words and `stdin`, and without literal pathspecs.

    With the index, tracked paths count as not ignored, and git refuses every path inside a submodule.
    """
    found = IgnoredPaths()

    def question(part: Sequence[bytes]) -> bytes:
        # Behind `./` no name can be taken for anything but a name.
        stdin = b"".join(b"./" + path + b"\0" for path in part)
        words = ("check-ignore", *(() if with_index else ("--no-index",)))
        return ask(*words, "--verbose", "-z", "--stdin", stdin=stdin, codes=(0, _NONE_IGNORED))

    for answer in ask_by_parts(question, list(paths), found.refused):
        fields = answer.split(b"\0")[:-1]
        for source, pattern, path in zip(fields[::4], fields[2::4], fields[3::4], strict=True):
            if not pattern.startswith(b"!"):
                found.rules[path.removeprefix(b"./")] = IgnoreRule(source, pattern)
    return found
