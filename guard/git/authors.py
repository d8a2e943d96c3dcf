"""List the newest commits and branches, and match them with agents by name."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from guard.core.base.first_use import dataclass, late_pattern
from guard.git.reader import RepositoryReader

_FIELDS = "%H%x00%ct%x00%an%x00%ae%x00%s%x00%(trailers:only,unfold)%x00%x01"
MOST_COMMITS = 2000
SHARED_BRANCHES = frozenset({"main", "master", "trunk", "develop", "dev"})
_TRAILERS = late_pattern(
    r"^(?:agent|agent-id|guard-agent|co-authored-by|assisted-by):", re.IGNORECASE
)
_RESCUED = "guard-rescue:"
_WORDS = late_pattern(r"[A-Za-z0-9_-]+")
_HEADS = "refs/heads/"


@dataclass(frozen=True)
class AuthoredCommit:
    """One commit with the names that it carries."""

    oid: str
    seconds: int
    """When it was committed, since the epoch."""
    author: str
    subject: str
    trailers: tuple[str, ...]

    def is_of(self, agent: str) -> bool:
        """Tell whether the author or a trailer names the agent, as a word of its own."""
        return agent.lower() in self._words

    @cached_property
    def _words(self) -> frozenset[str]:
        # Split once, however many agents are looked for.
        texts = [self.author, *(line for line in self.trailers if _TRAILERS.match(line))]
        return frozenset(word for text in texts for word in _words_of(text))


def _words_of(text: str) -> Iterable[str]:
    return (found[0].lower() for found in _WORDS.finditer(text))


def list_branches(git: RepositoryReader) -> list[str]:
    answer = git.ask("for-each-ref", "--format=%(refname)", "refs/heads")
    return answer.decode(errors="replace").splitlines()


def branches_by_agent(branches: Iterable[str]) -> Mapping[str, list[str]]:
    """Group the branches by the agent names in them, in lower case; shared branches such as main are left out."""
    found: dict[str, list[str]] = {}
    for branch in branches:
        short = branch.removeprefix(_HEADS)
        for word in set(_words_of(short)) if short not in SHARED_BRANCHES else ():
            found.setdefault(word, []).append(branch)
    return found


def list_commits_since(
    git: RepositoryReader,
    since: datetime,
    *,
    head: bool = False,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Iterator[AuthoredCommit]:
    """List the newest commits of all branches, of HEAD alone, or of some branches without others.

    Commits that guard made itself to rescue work are left out: they are no agent's activity.
    """
    has_head = git.line("rev-parse", "--quiet", "--verify", "HEAD^{commit}") is not None
    tips = [
        *(() if head or only else ("--branches",)),
        *(("HEAD",) if has_head and not only else ()),
    ]
    if not tips and not only:
        return
    answer = git.ask(
        "log",
        *tips,
        f"--max-count={MOST_COMMITS}",
        f"--since={int(since.timestamp())}",
        f"--format=tformat:{_FIELDS}",
        *only,
        *(("--not", *without) if without else ()),
        "--",
    )
    for commit in _parse(answer):
        if not any(line.casefold().startswith(_RESCUED) for line in commit.trailers):
            yield commit


def read_authors(git: RepositoryReader, oids: Sequence[str]) -> Iterator[AuthoredCommit]:
    """Read who made these commits, in the order in which they are given."""
    words = ("log", "--no-walk=unsorted", "--no-show-signature", "--stdin")
    stdin = "".join(f"{oid}\n" for oid in oids).encode()
    if oids:
        yield from _parse(git.ask(*words, f"--format=tformat:{_FIELDS}", stdin=stdin))


def _parse(answer: bytes) -> Iterator[AuthoredCommit]:
    for entry in answer.split(b"\x01"):
        fields = entry.decode(errors="replace").lstrip("\n").split("\0")
        if len(fields) >= 6 and fields[1].isdigit():
            oid, committed, name, address, subject, trailers = fields[:6]
            lines = tuple(trailers.splitlines())
            yield AuthoredCommit(oid, int(committed), f"{name} <{address}>", subject, lines)
