"""List the paths that commits have changed since a given commit."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from guard.errors import RepositoryProblem
from guard.git.commits import diff_files
from guard.git.gitdir_files import read_portion
from guard.git.reader import RepositoryReader
from guard.git.refs import missing_commits, read_refs

MOST_COMMITS = 20_000
MOST_PATHS = 200_000
_BRANCHES = ("refs/heads/", "worktrees/", "main-worktree/")
_REMOTE = "refs/remotes/"
_WALK = ("rev-list", "--stdin", "--timestamp", "--parents", f"--max-count={MOST_COMMITS}")


class _ChangedPath(NamedTuple):
    at: int
    parents: tuple[str, ...]


@dataclass
class Committed:
    """Commits, and every path that one of them changed, made or deleted."""

    oids: set[str] = field(default_factory=set)
    paths: set[bytes] = field(default_factory=set)


def read_committed(
    git: RepositoryReader, head: str | None, earliest: float, *, by_time: bool
) -> Committed:
    """Read what was committed since `head`, on any branch and in any work tree of the repository.

    A commit counts if its time is `earliest` or later. Unless all go `by_time`, an older one counts as well, if it is checked
    out here and no remote has it: the committer's clock may be wrong, while a pull brings old commits.
    """
    refs = read_refs(git)
    local = {oid for name, oid in refs.names.items() if name.startswith(_BRANCHES)}
    tips = (local | ({refs.head} if refs.head else set())) - {head}
    if not tips:
        return Committed()
    listed = _walk(git, tips, [head] if head else [])
    _refuse_more(listed, earliest)
    chosen = {oid for oid, commit in listed.items() if commit.at >= earliest}
    if not by_time and refs.head and refs.head != head:
        remote = {oid for name, oid in refs.names.items() if name.startswith(_REMOTE)}
        own = _walk(git, [refs.head], [*([head] if head else []), *sorted(remote)])
        _refuse_more(own, 0)
        listed |= own
        chosen |= own.keys()
    _refuse_cut(git, chosen)
    return Committed(chosen, _paths(git, chosen, listed, head))


def _walk(
    git: RepositoryReader, tips: Iterable[str], without: Collection[str]
) -> dict[str, _ChangedPath]:
    """The commits that `tips` lead to and `without` do not, newest first."""
    wanted = "".join([*(f"{oid}\n" for oid in tips), *(f"^{oid}\n" for oid in without)])
    try:
        lines = git.ask(*_WALK, stdin=wanted.encode()).decode().splitlines()
    except RepositoryProblem:
        gone = missing_commits(git, list(without))
        if not gone:
            raise
        raise RepositoryProblem(
            f"the repository no longer has the commit {gone[0][:12]}, which guard compares with",
            "fetch it again with `git fetch`",
        ) from None
    found = {}
    for line in lines:
        at, oid, *parents = line.split()
        found[oid] = _ChangedPath(int(at), tuple(parents))
    return found


def _refuse_more(listed: Mapping[str, _ChangedPath], earliest: float) -> None:
    # Git leaves out the oldest where there are too many; that does no harm if they do not count.
    if len(listed) >= MOST_COMMITS and min(commit.at for commit in listed.values()) >= earliest:
        raise RepositoryProblem(
            f"there are {MOST_COMMITS} new commits or more, too many for guard to compare",
            "look at them with `git log`",
        )


def _refuse_cut(git: RepositoryReader, chosen: Collection[str]) -> None:
    # Where a shallow history ends, git cannot tell what the commit changed.
    found = read_portion(git.repository.common_dir / "shallow")
    ends = set(found.data.decode(errors="replace").split()) if found else set()
    if not ends.isdisjoint(chosen):
        raise RepositoryProblem(
            "the history is shallow, and ends among the commits that guard compares",
            "complete it with `git fetch --unshallow`",
        )


def _paths(
    git: RepositoryReader,
    chosen: Collection[str],
    listed: Mapping[str, _ChangedPath],
    head: str | None,
) -> set[bytes]:
    """The paths that each commit changes against its first parent.

    Of a commit that does not build on `head`, an amended one for example, only those that differ from `head` too: the rest
    was there before.
    """
    builds_on = _descendants(listed, head) if head else set(chosen)
    strays = {oid for oid in chosen if oid not in builds_on}
    unlike = dict(_differences(git, dict.fromkeys(strays, head)))
    found = _paths_unlike_at_end(strays, listed, unlike)
    parents = {oid: next(iter(listed[oid].parents), None) for oid in chosen}
    for oid, changed in _differences(git, parents):
        found |= changed & unlike.get(oid, set()) if oid in strays else changed
        if len(found) > MOST_PATHS:
            raise RepositoryProblem(
                f"the new commits changed more than {MOST_PATHS} files", "see `git log --stat`"
            )
    return found


def _paths_unlike_at_end(
    strays: Collection[str], listed: Mapping[str, _ChangedPath], unlike: Mapping[str, set[bytes]]
) -> set[bytes]:
    # Where history was begun anew, no commit says what was deleted: the last ones lack it.
    if all(listed[oid].parents for oid in strays):
        return set()
    inner = {parent for oid in strays for parent in listed[oid].parents}
    return {path for oid in strays if oid not in inner for path in unlike.get(oid, ())}


def _descendants(commits: Mapping[str, _ChangedPath], head: str) -> set[str]:
    children: dict[str, list[str]] = {}
    for oid, commit in commits.items():
        for parent in commit.parents:
            children.setdefault(parent, []).append(oid)
    found: set[str] = set()
    ahead = [head]
    while ahead:
        new = set(children.get(ahead.pop(), ())) - found
        found |= new
        ahead += new
    return found


def _differences(
    git: RepositoryReader, pairs: Mapping[str, str | None]
) -> Iterator[tuple[str, set[bytes]]]:
    """The paths in which the two of each pair differ, or all of a commit without a second; equal pairs are left out."""
    lines = [f"{oid} {other}" if other else oid for oid, other in pairs.items()]
    for oid, changed in diff_files(git, lines):
        yield oid, {path for _, path in changed}
