"""What git tells of the commits since a baseline: the facts that `core.work` counts."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

EMPTY_TREES = frozenset(
    {
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
    }
)
"""The tree that has nothing in it, in both formats of object ids."""


class Commit(NamedTuple):
    """One commit, as far as counting needs it."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    subject: str = ""
    rescued: bool = False
    """Whether guard made it to save what was left."""
    author: tuple[str, int] = ("", 0)
    """Who wrote it and when: what stays the same when it is picked, rebased or amended."""
    committed: int = 0
    mark: str = ""
    """What guard's trailer says: the run and the iteration."""


class CommitChange(NamedTuple):
    """What a commit changes."""

    paths: frozenset[str]
    patches: frozenset[str]
    """Ids of its patch: two commits that have one in common make the same change."""


Commits = Mapping[str, Commit]


@dataclass(frozen=True)
class History:
    """The facts. A commit is new if a local name leads to it and nothing of the baseline did."""

    before_head: str | None = None
    before_branch: str | None = None
    before_tree: str | None = None
    head: str | None = None
    branch: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    """Where local names stand now: branches, tags, detached HEADs of other work trees."""
    commits: Commits = field(default_factory=dict)
    """The new ones, newest first."""
    around: Commits = field(default_factory=dict)
    """Their parents that are not new."""
    fetched: frozenset[str] = frozenset()
    """New commits that a reflog shows to have come from elsewhere; with each, all that lead to it came."""
    beside: frozenset[str] = frozenset()
    """Commits at which iterations of other work trees have stood; what leads to each is theirs, unless it was taken in here."""
    made_here: frozenset[str] = frozenset()
    """Commits that a reflog shows to have been made in this repository, and not by an iteration of another work tree."""
    taken_over: frozenset[str] = frozenset()
    """Commits that a reflog shows to have been made from others: picked, rebased, amended."""
    removed: Sequence[Commit] = ()
    """Commits of the baseline's branches that no ref leads to any more."""
    dropped: Sequence[Commit] = ()
    """Commits made since the baseline that no ref leads to."""
    earlier: frozenset[str] = frozenset()
    """Commits of the baseline, on whatever branch, that a new one may repeat."""
    changes: Mapping[str, CommitChange] = field(default_factory=dict)
    """What commits change, for those that have to be compared."""
    resolving: frozenset[str] = frozenset()
    """Merges that differ from all of their parents in the same place, as after a conflict."""
    stashed: tuple[str, ...] = ()
    """Entries of the stash that were not there before."""
    warnings: tuple[str, ...] = ()


def reachable(starts: Iterable[str], commits: Commits) -> set[str]:
    """All of these commits that one comes to from the starts."""
    found: set[str] = set()
    open_ends = [oid for oid in starts if oid in commits]
    while open_ends:
        oid = open_ends.pop()
        if oid not in found:
            found.add(oid)
            open_ends += [parent for parent in commits[oid].parents if parent in commits]
    return found


def leading_to(targets: Container[str], commits: Commits) -> set[str]:
    """All of these commits from which one comes to a target; the commits are in an order with children first."""
    found: set[str] = set()
    for commit in reversed(list(commits.values())):
        if commit.oid in targets or not found.isdisjoint(commit.parents):
            found.add(commit.oid)
    return found


def imported(history: History) -> set[str]:
    """New commits that are not the agent's: fetched, or of an iteration beside this one, and not made here.

    A commit that was pushed is on a remote branch too, and stays the agent's: only a reflog entry of a fetch or a pull makes
    a commit foreign. Tags come with a fetch and have no reflog, so what only a tag leads to must have been made here.
    """
    foreign = reachable(history.fetched, history.commits)
    tags = [oid for name, oid in history.names.items() if name.startswith("refs/tags/")]
    others = [oid for name, oid in history.names.items() if not name.startswith("refs/tags/")]
    if history.head is not None:
        others.append(history.head)
    foreign |= reachable(tags, history.commits) - reachable(others, history.commits)
    foreign |= reachable(history.beside, history.commits) - _taken_in(history)
    return foreign - history.made_here


def _taken_in(history: History) -> set[str]:
    """New commits on HEAD, or on the branch on which the iteration began."""
    ends = (history.head, history.names.get(history.before_branch or ""))
    return reachable([oid for oid in ends if oid is not None], history.commits)
