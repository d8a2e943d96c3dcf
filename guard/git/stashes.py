"""What entries of the stash hold."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from guard.core.base.paths import spell
from guard.errors import RepositoryProblem
from guard.git.locate import Repository
from guard.git.reader import RepositoryReader
from guard.git.reflogs import stash
from guard.git.run import TIME_LIMIT_SECONDS

_MOST_ENTRIES = 50
_NAMES = ("-r", "-z", "--name-only")


def brought_back(
    repository: Repository,
    before: Sequence[str],
    environ: Mapping[str, str],
    time_limit: float = TIME_LIMIT_SECONDS,
) -> set[str]:
    """The paths, spelled, in entries of the stash that were there before and are gone: popped, or thrown away."""
    git = RepositoryReader(repository, environ, time_limit)
    now = stash(repository, git.line("rev-parse", "--quiet", "--verify", "refs/stash"))
    gone = [oid for oid in before if oid not in now]
    found: set[str] = set()
    for oid in gone[-_MOST_ENTRIES:]:
        found |= _paths(git, oid)
    return found


def _paths(git: RepositoryReader, oid: str) -> set[str]:
    """What the entry changes against the commit on which it was made, and the files that it has beside, in a third parent."""
    names = b""
    with suppress(RepositoryProblem):
        names += git.ask("diff-tree", *_NAMES, "--no-renames", f"{oid}^1", oid)
        if git.line("rev-parse", "--quiet", "--verify", f"{oid}^3") is not None:
            names += git.ask("ls-tree", *_NAMES, "--full-tree", f"{oid}^3")
    return {spell(name) for name in names.split(b"\0") if name}
