"""Hold the commits since a baseline, as git reports them, and find the relations between them."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from typing import NamedTuple

from guard.core.base.first_use import dataclass

EMPTY_TREES = frozenset(
    {
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    }
)
"""The id of the empty tree, in both object formats of git."""


class Commit(NamedTuple):
    """The fields of a commit that the count needs."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    subject: str = ""
    rescued: bool = False
    """Whether guard made the commit to save uncommitted work."""
    author: tuple[str, int] = ("", 0)
    """Author and author date, which stay when the commit is picked, rebased or amended."""
    committed: int = 0
    committer: str = ""
    mark: str = ""
    """The run and the iteration, from guard's trailer."""


class CommitChange(NamedTuple):
    """The changes of one commit."""

    paths: frozenset[str]
    patches: frozenset[str]
    """Patch ids: two commits that share one make the same change."""


Commits = Mapping[str, Commit]


@dataclass(frozen=True)
class History:
    """The history as git reports it. A commit is new if a local ref leads to it now, and none did at the baseline."""

    before_head: str | None = None
    before_branch: str | None = None
    before_tree: str | None = None
    head: str | None = None
    branch: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """The commits of the local refs now: branches, tags, detached HEADs of other work trees."""
    commits: Commits = field(default_factory=dict)
    """The new commits, newest first."""
    around: Commits = field(default_factory=dict)
    """The parents of new commits that are not new themselves."""
    fetched: frozenset[str] = frozenset()
    """New commits that a reflog shows as fetched; their ancestors came with them."""
    beside: frozenset[str] = frozenset()
    """Commits that iterations in other work trees had checked out; their ancestors are theirs, unless merged here."""
    strange: frozenset[str] = frozenset()
    """New commits that no trace shows as made here, of a committer who did nothing else here."""
    made_here: frozenset[str] = frozenset()
    """Commits that a reflog shows as made in this repository, and not by an iteration in another work tree."""
    taken_over: frozenset[str] = frozenset()
    """Commits that a reflog shows as made from others: picked, rebased, amended."""
    removed: Sequence[Commit] = ()
    """Commits of the baseline's branches that no ref leads to any more."""
    dropped: Sequence[Commit] = ()
    """Commits made since the baseline that no ref leads to."""
    earlier: frozenset[str] = frozenset()
    """Commits of the baseline, on any branch, that a new commit may repeat."""
    changes: Mapping[str, CommitChange] = field(default_factory=dict)
    """The changes of those commits that have to be compared."""
    resolving: frozenset[str] = frozenset()
    """Merges that differ from all of their parents at the same place, as after a conflict."""
    repeating: frozenset[str] = frozenset()
    """New commits that have nothing in them but what commits of others brought, which are not in their history."""
    users: frozenset[str] = frozenset()
    """New commits in which every changed path has the content that the user had left there before the iteration."""
    users_trees: frozenset[str] = frozenset()
    """Trees that are the baseline's but for such paths."""
    stashed: tuple[str, ...] = ()
    """New entries of the stash."""
    warnings: tuple[str, ...] = ()


def reachable_from(starts: Iterable[str], commits: Commits) -> set[str]:
    found: set[str] = set()
    open_ends = [oid for oid in starts if oid in commits]
    while open_ends:
        oid = open_ends.pop()
        if oid not in found:
            found.add(oid)
            open_ends += [parent for parent in commits[oid].parents if parent in commits]
    return found


def descendants_of(targets: Container[str], commits: Commits) -> set[str]:
    """Return the targets and their descendants among these commits, which are given children first."""
    found: set[str] = set()
    for commit in reversed(list(commits.values())):
        if commit.oid in targets or not found.isdisjoint(commit.parents):
            found.add(commit.oid)
    return found


def foreign_commits(history: History) -> set[str]:
    """Return new commits that are not the agent's: fetched, pushed in, or made by an iteration in another work tree."""
    # A pushed commit is on a remote branch too, and stays the agent's: only the reflog entry of a fetch or a pull makes a
    # commit foreign. Tags come with a fetch and have no reflog, so a commit that only a tag leads to must be made here.
    foreign = reachable_from(history.fetched, history.commits)
    tags = [oid for name, oid in history.names.items() if name.startswith("refs/tags/")]
    others = [oid for name, oid in history.names.items() if not name.startswith("refs/tags/")]
    if history.head is not None:
        others.append(history.head)
    foreign |= reachable_from(tags, history.commits) - reachable_from(others, history.commits)
    foreign |= reachable_from(history.beside, history.commits) - _on_own_branches(history)
    return (foreign | history.strange) - history.made_here


def foreign_tips(history: History, tip: str, foreign: Container[str]) -> tuple[str, ...]:
    """Return the newest commits of others in the history of a commit, those that no other of them contains."""
    held = {oid for oid in reachable_from([tip], history.commits) if oid in foreign}
    parents = {parent for oid in held for parent in history.commits[oid].parents}
    return tuple(oid for oid in history.commits if oid in held and oid not in parents)


def _on_own_branches(history: History) -> set[str]:
    # HEAD, and the branch on which the iteration began.
    ends = (history.head, history.names.get(history.before_branch or ""))
    return reachable_from([oid for oid in ends if oid is not None], history.commits)
