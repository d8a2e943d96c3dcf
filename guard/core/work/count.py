"""Count the agent's own commits since the baseline.

A new commit counts if it was made here, changes something, repeats no earlier change, and holds more than what the user had
left uncommitted before. A merge counts only if it resolves a conflict: the commits that it brings in count themselves. Commits
that cancel each other out count, and `net_change` is False.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from guard.core.base.fields import Count, Frozen, Line, Oid
from guard.core.base.text import escape, fit_line, plural
from guard.core.work.history import (
    EMPTY_TREES,
    Commit,
    History,
    descendants_of,
    foreign_commits,
    reachable_from,
)

MOST_LINES = 50


class CommitLine(Frozen):
    """One commit, as lists show it."""

    oid: Oid
    subject: Line
    branch: Line | None
    """The full name of the ref that has the commit."""


class Work(Frozen):
    """What changed in the repository's history since the baseline."""

    new_commits: Count = 0
    """The agent's own new commits."""
    empty: Count = 0
    """Commits that change nothing."""
    copies: Count = 0
    """Commits that repeat an earlier change: picked, rebased, amended in their message only, or made of what others brought."""
    merges: Count = 0
    """Merges that only bring in commits that are counted themselves."""
    rewritten: Count = 0
    """Earlier commits that others replaced."""
    lost: Count = 0
    """Commits, earlier or new, that no ref leads to and that no other commit replaces."""
    imported: Count = 0
    """Commits that came from another repository or work tree."""
    on_other_branches: Count = 0
    """How many of the new commits are not on the branch on which the iteration began."""
    rescued: Count = 0
    """Guard's own commits."""
    users: Count = 0
    """Commits that hold only what the user had left uncommitted before the iteration."""
    unrelated: bool = False
    """Whether a new commit has no parent, beside an existing history."""
    net_change: bool = False
    """Whether the new commits changed anything in sum; False if they cancel each other out."""
    head: Oid | None = None
    branch: Line | None = None
    branch_changed: bool = False
    commits: tuple[CommitLine, ...] = ()
    """The newest of the new commits."""
    other_branches: tuple[Line, ...] = ()
    lost_tips: tuple[Oid, ...] = ()
    """The commits from which all lost commits can be found again."""
    stashed: tuple[Oid, ...] = ()
    """Stash entries made since the baseline: uncommitted work."""
    warnings: tuple[Line, ...] = ()

    @property
    def counted(self) -> int:
        """Return how many new commits are work: none if they cancel each other out."""
        return self.new_commits if self.net_change else 0


def new_commits(history: History) -> list[Commit]:
    """Return the agent's own new commits, the newest first."""
    _, kinds = _own_commits(history)
    return [history.commits[oid] for oid, kind in kinds.items() if kind == "new"]


def commits_with_changes(history: History) -> list[Commit]:
    """Return the commits that the agent made with something new in them, its own or the user's, the newest first."""
    _, kinds = _own_commits(history)
    return [history.commits[oid] for oid, kind in kinds.items() if kind in ("new", "users")]


def tips_of_work(history: History) -> tuple[str, ...]:
    """Return the commits of HEAD and of branches that have all of the agent's work, and guard's rescues of it."""
    _, kinds = _own_commits(history)
    left = {oid for oid, kind in kinds.items() if kind in ("new", "rescued")}
    tips, ends = [], [history.head, *dict.fromkeys(history.names.values())]
    reach = {oid: reachable_from([oid], history.commits) for oid in ends if oid is not None}
    # HEAD first, then what has most, so that of branches that build on each other the last one is taken.
    for oid in sorted(reach, key=lambda oid: (oid != history.head, -len(reach[oid] & left))):
        if reach[oid] & left:
            tips.append(oid)
            left -= reach[oid]
    return tuple(tips)


def _own_commits(history: History) -> tuple[set[str], dict[str, "_Kind"]]:
    """Return the commits of others, and the kind of each one of the agent's."""
    foreign = foreign_commits(history)
    own = [commit for oid, commit in history.commits.items() if oid not in foreign]
    before = _patch_ids(history, (*history.earlier, *(commit.oid for commit in history.removed)))
    return foreign, {commit.oid: _kind(commit, history, before) for commit in own}


def count_work(history: History) -> Work:
    foreign, kinds = _own_commits(history)
    own = [history.commits[oid] for oid in kinds]
    new = {oid: history.commits[oid] for oid, kind in kinds.items() if kind == "new"}
    count = list(kinds.values()).count
    rewritten, lost = _find_lost(history, own)
    places = _Branches(history)
    elsewhere = [oid for oid in new if oid not in places.home]
    return Work(
        new_commits=len(new),
        empty=count("empty"),
        copies=count("copy"),
        merges=count("merge"),
        rewritten=rewritten,
        lost=len(lost),
        imported=len(foreign),
        on_other_branches=len(elsewhere),
        rescued=count("rescued"),
        users=count("users"),
        unrelated=history.before_head is not None and any(not c.parents for c in new.values()),
        net_change=_has_net_change(history, new),
        head=history.head,
        branch=_cut(history.branch),
        branch_changed=history.branch != history.before_branch,
        commits=tuple(places.line(commit) for commit in list(new.values())[:MOST_LINES]),
        other_branches=tuple(places.names_of(elsewhere))[:MOST_LINES],
        lost_tips=_find_tips(lost)[:MOST_LINES],
        stashed=history.stashed,
        warnings=tuple(_cut(warning) or "" for warning in history.warnings),
    )


def describe_uncounted(work: Work) -> Iterator[str]:
    """Yield in words how many commits there are that do not count as the agent's work."""
    if work.empty:
        yield f"{plural(work.empty, 'empty commit')}"
    if work.copies:
        yield f"{plural(work.copies, 'commit')} that {_repeats(work.copies)} an earlier one"
    if work.users:
        yield f"{plural(work.users, 'commit')} of the user's own work"
    if work.imported:
        yield f"{plural(work.imported, 'commit')} of others"
    if work.new_commits and not work.net_change:
        yield f"{plural(work.new_commits, 'commit')} that change nothing in sum"


def _repeats(count: int) -> str:
    return "repeats" if count == 1 else "repeat"


_Kind = Literal["new", "empty", "copy", "merge", "rescued", "users"]


def _kind(commit: Commit, history: History, before: frozenset[str]) -> _Kind:
    if commit.rescued:
        return "rescued"
    if commit.oid in history.users:
        return "users"
    if len(commit.parents) > 1:
        return "new" if commit.oid in history.resolving else "merge"
    if commit.tree in _parent_trees(commit, history):
        return "empty"
    if commit.oid in history.repeating:
        return "copy"
    return "new" if before.isdisjoint(_patch_ids(history, [commit.oid])) else "copy"


def _parent_trees(commit: Commit, history: History) -> set[str]:
    if not commit.parents:
        return set(EMPTY_TREES)
    known = (history.commits.get(oid) or history.around.get(oid) for oid in commit.parents)
    return {parent.tree for parent in known if parent is not None}


def _patch_ids(history: History, oids: Iterable[str]) -> frozenset[str]:
    known = (history.changes[oid].patches for oid in oids if oid in history.changes)
    return frozenset[str]().union(*known)


def _find_lost(history: History, own: Sequence[Commit]) -> tuple[int, list[Commit]]:
    # A commit is replaced if another commit makes the same change, or if new commits changed all of its files again. An empty
    # commit cannot be lost.
    made = [commit.oid for commit in own]
    removed = {commit.oid for commit in history.removed}
    patches = _patch_ids(history, (*made, *(history.earlier - removed)))
    paths = frozenset[str]().union(
        *(history.changes[o].paths for o in made if o in history.changes)
    )
    rewritten, lost = 0, []
    for commit in (*history.removed, *history.dropped):
        change = history.changes.get(commit.oid)
        if change is None or not change.paths:
            continue
        if patches.isdisjoint(change.patches) and not change.paths <= paths:
            lost.append(commit)
        else:
            rewritten += commit.oid in removed
    return rewritten, lost


def _find_tips(commits: Sequence[Commit]) -> tuple[str, ...]:
    parents = {parent for commit in commits for parent in commit.parents}
    return tuple(commit.oid for commit in commits if commit.oid not in parents)


def _has_net_change(history: History, new: dict[str, Commit]) -> bool:
    # A ref has a tree that no commit without new work has.
    holding = descendants_of(new, history.commits)
    without = [commit for oid, commit in history.commits.items() if oid not in holding]
    known = {commit.tree for commit in (*without, *history.around.values(), *history.removed)}
    if history.before_head is None:
        known |= EMPTY_TREES
    known |= {history.before_tree or "", *history.users_trees}
    stand = holding & {*history.names.values(), history.head}
    return any(history.commits[oid].tree not in known for oid in stand if oid)


class _Branch(NamedTuple):
    name: str
    commits: set[str]


class _Branches:
    """The branches of the repository and their commits: the branch of the start first, then HEAD's, then the others."""

    def __init__(self, history: History) -> None:
        names = dict(history.names)
        if history.head is not None and history.branch is None:
            names = {"HEAD": history.head, **names}
        start = names.get(history.before_branch or "HEAD") or history.head
        self.home = reachable_from([start] if start else [], history.commits)
        ordered = sorted(
            names, key=lambda name: (name != history.before_branch, name != history.branch)
        )
        self._places = [
            _Branch(name, reachable_from([names[name]], history.commits)) for name in ordered
        ]

    def line(self, commit: Commit) -> CommitLine:
        name = next((name for name, commits in self._places if commit.oid in commits), None)
        return CommitLine(oid=commit.oid, subject=_cut(commit.subject) or "", branch=_cut(name))

    def names_of(self, oids: Sequence[str]) -> Iterator[str]:
        for name, commits in self._places:
            if not commits.isdisjoint(oids):
                yield _cut(name) or ""


def _cut(text: str | None) -> str | None:
    return None if text is None else fit_line(escape(text))
