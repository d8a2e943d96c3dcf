"""The newest commits of all branches, and whose they are."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from guard.git.locate import Repository
from guard.git.reading import Reader

_FIELDS = "%H%x00%ct%x00%an%x00%ae%x00%S%x00%s%x00%(trailers:only,unfold)%x00%x01"
_TRAILERS = re.compile(
    r"^(?:agent|agent-id|guard-agent|co-authored-by|assisted-by):", re.IGNORECASE
)
_RESCUED = "guard-rescue:"


@dataclass(frozen=True)
class AuthoredCommit:
    """One commit, by the names that it carries."""

    oid: str
    seconds: int
    """When it was committed, since the epoch."""
    author: str
    ref: str
    """A ref that leads to it."""
    subject: str
    trailers: tuple[str, ...]

    def is_of(self, agent: str) -> bool:
        """Whether its author, a trailer or its branch names the agent, as a word of its own."""
        name = re.compile(rf"(?<![A-Za-z0-9_-]){re.escape(agent)}(?![A-Za-z0-9_-])", re.IGNORECASE)
        said = [self.author, self.ref, *(one for one in self.trailers if _TRAILERS.match(one))]
        return any(name.search(one) for one in said)


def commits_since(
    repository: Repository,
    since: datetime,
    most: int,
    environ: Mapping[str, str],
    time_limit: float,
) -> Iterator[AuthoredCommit]:
    """So many of the newest; those that guard made itself to rescue work are nobody's activity."""
    seconds = int(since.timestamp())
    answer = Reader(repository, environ, time_limit).ask(
        "log",
        "--branches",
        "HEAD",
        "--source",
        f"--max-count={most}",
        f"--since={seconds}",
        f"--format=tformat:{_FIELDS}",
    )
    for entry in answer.split(b"\x01"):
        fields = entry.decode(errors="replace").lstrip("\n").split("\0")
        if len(fields) < 7 or not fields[1].isdigit():
            continue
        oid, committed, name, address, ref, subject, trailers = fields[:7]
        lines = tuple(trailers.splitlines())
        if not any(one.casefold().startswith(_RESCUED) for one in lines):
            author = f"{name} <{address}>"
            yield AuthoredCommit(oid, int(committed), author, ref, subject, lines)
