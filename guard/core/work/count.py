"""What counts as new work: the agent's own commits since the baseline.

A new commit counts if it was made here, changes something, and does not repeat a change that was there before. A merge counts
only where it had to resolve something: what it brings in is counted by itself. Commits that cancel each other out are
counted, and `net_change` says that nothing came of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from guard.core.base.fields import Count, Frozen, Line, Oid
from guard.core.base.text import visible
from guard.core.work.history import EMPTY_TREES, Commit, History, imported, leading_to, reachable

MOST_LINES = 50
_LONGEST = 512


class CommitLine(Frozen):
    """One commit in a list for people."""

    oid: Oid
    subject: Line
    branch: Line | None
    """The ref on which it is, by its full name."""


class Work(Frozen):
    """What became of the repository's history since the baseline."""

    new_commits: Count = 0
    """The agent's own."""
    empty: Count = 0
    """Commits that change nothing."""
    copies: Count = 0
    """Commits that repeat a change that was there before: picked, rebased, or amended in their message only."""
    merges: Count = 0
    """Merges that only bring in what is counted by itself."""
    rewritten: Count = 0
    """Commits of before that were replaced by others."""
    lost: Count = 0
    """Commits, of before or since, that no ref leads to and that nothing replaces."""
    imported: Count = 0
    """Commits that came from elsewhere."""
    on_other_branches: Count = 0
    """How many of the new commits are not on the branch on which the iteration began."""
    rescued: Count = 0
    """Guard's own commits."""
    unrelated: bool = False
    """Whether a new commit begins a history of its own."""
    net_change: bool = False
    """Whether something came of the new commits; False where they cancel each other out."""
    head: Oid | None = None
    branch: Line | None = None
    branch_changed: bool = False
    commits: tuple[CommitLine, ...] = ()
    """The newest of the new commits."""
    other_branches: tuple[Line, ...] = ()
    lost_tips: tuple[Oid, ...] = ()
    """The commits by which all that is lost can be found again."""
    stashed: tuple[Oid, ...] = ()
    """Entries of the stash that were made since: work that is not committed."""
    warnings: tuple[Line, ...] = ()


def count_work(history: History) -> Work:
    """Sort every commit into one kind, and count."""
    foreign = imported(history)
    own = [commit for oid, commit in history.commits.items() if oid not in foreign]
    before = _patches(history, (*history.earlier, *(commit.oid for commit in history.removed)))
    kinds = {commit.oid: _kind(commit, history, before) for commit in own}
    new = {oid: history.commits[oid] for oid, kind in kinds.items() if kind == "new"}
    count = list(kinds.values()).count
    rewritten, lost = _gone(history, own)
    places = _Places(history)
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
        unrelated=history.before_head is not None and any(not c.parents for c in new.values()),
        net_change=_net_change(history, new),
        head=history.head,
        branch=_cut(history.branch),
        branch_changed=history.branch != history.before_branch,
        commits=tuple(places.line(commit) for commit in list(new.values())[:MOST_LINES]),
        other_branches=tuple(places.names_of(elsewhere))[:MOST_LINES],
        lost_tips=_tips(lost)[:MOST_LINES],
        stashed=history.stashed,
        warnings=tuple(_cut(warning) or "" for warning in history.warnings),
    )


_Kind = Literal["new", "empty", "copy", "merge", "rescued"]


def _kind(commit: Commit, history: History, before: frozenset[str]) -> _Kind:
    if commit.rescued:
        return "rescued"
    if len(commit.parents) > 1:
        return "new" if commit.oid in history.resolving else "merge"
    if commit.tree in _parent_trees(commit, history):
        return "empty"
    return "new" if before.isdisjoint(_patches(history, [commit.oid])) else "copy"


def _parent_trees(commit: Commit, history: History) -> set[str]:
    if not commit.parents:
        return set(EMPTY_TREES)
    known = (history.commits.get(oid) or history.around.get(oid) for oid in commit.parents)
    return {parent.tree for parent in known if parent is not None}


def _patches(history: History, oids: Iterable[str]) -> frozenset[str]:
    known = (history.changes[oid].patches for oid in oids if oid in history.changes)
    return frozenset[str]().union(*known)


def _gone(history: History, own: Sequence[Commit]) -> tuple[int, list[Commit]]:
    """How many commits of before were replaced, and which commits are lost.

    Replaced is one whose change is there in another commit, or whose files were all changed again by the new ones. Nothing is
    lost with a commit that changes nothing.
    """
    made = [commit.oid for commit in own]
    removed = {commit.oid for commit in history.removed}
    patches = _patches(history, (*made, *(history.earlier - removed)))
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


def _tips(commits: Sequence[Commit]) -> tuple[str, ...]:
    parents = {parent for commit in commits for parent in commit.parents}
    return tuple(commit.oid for commit in commits if commit.oid not in parents)


def _net_change(history: History, new: dict[str, Commit]) -> bool:
    """Whether a name stands on a tree that no commit without new work has."""
    holding = leading_to(new, history.commits)
    without = [commit for oid, commit in history.commits.items() if oid not in holding]
    known = {commit.tree for commit in (*without, *history.around.values(), *history.removed)}
    if history.before_head is None:
        known |= EMPTY_TREES
    known |= {history.before_tree or ""}
    stand = holding & {*history.names.values(), history.head}
    return any(history.commits[oid].tree not in known for oid in stand if oid)


class _Place(NamedTuple):
    name: str
    commits: set[str]


class _Places:
    """On which branch a commit is: that of the beginning first, then HEAD's, then any other."""

    def __init__(self, history: History) -> None:
        names = dict(history.names)
        if history.head is not None and history.branch is None:
            names = {"HEAD": history.head, **names}
        start = names.get(history.before_branch or "HEAD") or history.head
        self.home = reachable([start] if start else [], history.commits)
        ordered = sorted(
            names, key=lambda name: (name != history.before_branch, name != history.branch)
        )
        self._places = [_Place(name, reachable([names[name]], history.commits)) for name in ordered]

    def line(self, commit: Commit) -> CommitLine:
        name = next((name for name, commits in self._places if commit.oid in commits), None)
        return CommitLine(oid=commit.oid, subject=_cut(commit.subject) or "", branch=_cut(name))

    def names_of(self, oids: Sequence[str]) -> Iterator[str]:
        """The names that lead to any of these commits."""
        for name, commits in self._places:
            if not commits.isdisjoint(oids):
                yield _cut(name) or ""


def _cut(text: str | None) -> str | None:
    if text is None:
        return None
    shown = visible(text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
