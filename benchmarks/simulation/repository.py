"""A git repository in memory: commits with files, branches, and what reflogs would remember."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha1
from itertools import count

from guard.core.work.history import Commit, CommitChange, History

MAIN = "refs/heads/main"
Lines = tuple[str, ...]
Files = Mapping[str, Lines]


@dataclass(frozen=True)
class Baseline:
    """Where the repository stood when the session began."""

    head: str | None
    branch: str | None
    tree: str | None
    refs: Mapping[str, str]
    known: frozenset[str]


@dataclass
class Repository:
    """What a session does to a repository, one act after the other."""

    commits: dict[str, Commit] = field(default_factory=dict)
    """In the order in which they were made, so that parents come first."""
    refs: dict[str, str] = field(default_factory=dict)
    branch: str | None = MAIN
    detached: str | None = None
    fetched: set[str] = field(default_factory=set)
    strange: set[str] = field(default_factory=set)
    """Commits that nothing here made or fetched, of a committer who did nothing else here."""
    users: dict[str, Lines] = field(default_factory=dict)
    """What the user had left uncommitted before the session."""
    made: set[str] = field(default_factory=set)
    real: set[str] = field(default_factory=set)
    """The truth: commits that are new work of the agent."""
    _trees: dict[str, Files] = field(default_factory=dict)
    _ticks: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def head(self) -> str | None:
        return self.refs.get(self.branch) if self.branch else self.detached

    def files(self, oid: str | None = None) -> dict[str, Lines]:
        """What a commit has in it; HEAD's if none is named."""
        oid = oid or self.head
        return dict(self._trees[self.commits[oid].tree]) if oid else {}

    def commit(
        self, changes: Mapping[str, Lines | None], *, real: bool = False, rescued: bool = False
    ) -> str:
        """A commit on HEAD; without changes an empty one."""
        oid = self._make(self._changed(self.files(), changes), self._parents(), rescued=rescued)
        if real:
            self.real.add(oid)
        return self._move(oid)

    def upstream(self, commits: int, below: int = 0) -> str:
        """Commits that somebody else made on so many commits before HEAD, and that a fetch brought; HEAD stays."""
        tip = self.head
        for _ in range(below):
            assert tip is not None
            tip = self.commits[tip].parents[0]
        for _ in range(commits):
            files = {**self.files(tip), f"upstream-{next(self._ticks)}.txt": ("theirs",)}
            tip = self._make(files, (tip,) if tip else ())
        assert tip is not None
        self.fetched.add(tip)
        return tip

    def push_in(self, commits: int, branch: str) -> None:
        """Commits that somebody pushed here from another clone; where a branch is checked out, its files follow."""
        before = set(self.commits)
        tip = self.upstream(commits)
        self.fetched.discard(tip)
        self.strange |= self.commits.keys() - before
        self.refs[branch] = tip

    def forward(self, oid: str) -> None:
        """Fast-forward to a commit that was fetched."""
        self._move(oid, made=False)

    def amend(self, changes: Mapping[str, Lines | None], *, real: bool = False) -> None:
        """Make the last commit again: by the same author at the same time, committed now."""
        assert self.head is not None
        old = self.commits[self.head]
        oid = self._make(self._changed(self.files(), changes), old.parents, author=old.author)
        if real:
            self.real.add(oid)
        self._move(oid)

    def reset(self, commits: int) -> list[str]:
        """Go back by so many commits; which they were."""
        left = []
        for _ in range(commits):
            assert self.head is not None
            left.append(self.head)
            self._move(self.commits[self.head].parents[0], made=False)
        return left

    def rebase(self, commits: int, onto: str) -> None:
        """Put the last commits onto another one."""
        moved = [self.commits[oid] for oid in reversed(self.reset(commits))]
        self._move(onto, made=False)
        for old in moved:
            files = self._changed(self.files(), self._change(old))
            self._move(self._make(files, self._parents(), author=old.author))

    def switch(self, branch: str) -> None:
        """Go to a branch, a new one if there is none of that name."""
        if self.head is not None:
            self.refs.setdefault(branch, self.head)
        self.branch, self.detached = branch, None

    def detach(self) -> None:
        self.branch, self.detached = None, self.head

    def baseline(self) -> Baseline:
        head = self.head
        tree = self.commits[head].tree if head else None
        self.made.clear()
        known = frozenset(self._reachable([*self.refs.values(), *([head] if head else [])]))
        return Baseline(head, self.branch, tree, dict(self.refs), known)

    def delivered(self) -> bool:
        """The truth: whether new work of the agent is on some branch."""
        return not self.real.isdisjoint(self._reachable(self._tips()))

    def plain_count(self, baseline: Baseline) -> int:
        """`git rev-list --count BASELINE..HEAD`."""
        mine = self._reachable([self.head] if self.head else [])
        return len(mine - self._reachable([baseline.head] if baseline.head else []))

    def history(self, baseline: Baseline) -> History:
        """The facts as `guard.git.history` would gather them."""
        there = self._reachable(self._tips())
        new = {oid: self.commits[oid] for oid in reversed(self.commits) if oid in there}
        new = {oid: commit for oid, commit in new.items() if oid not in baseline.known}
        parents = {parent for commit in new.values() for parent in commit.parents}
        around = {oid: self.commits[oid] for oid in parents - new.keys()}
        before = self._reachable([*baseline.refs.values(), *filter(None, [baseline.head])])
        facts = History(
            before_head=baseline.head,
            before_branch=baseline.branch,
            before_tree=baseline.tree,
            head=self.head,
            branch=self.branch,
            names=dict(self.refs),
            commits=new,
            around=around,
            fetched=frozenset(self.fetched),
            strange=frozenset(self.strange & new.keys()),
            users=frozenset(oid for oid, one in new.items() if self._is_users(self._change(one))),
            users_trees=self._users_trees(baseline, new),
            made_here=frozenset(self.made),
            removed=self._listed(before - there),
            dropped=self._listed(self.made - there - baseline.known),
        )
        return self._compared(facts, before - self._reachable(around))

    def _is_users(self, change: Mapping[str, Lines | None]) -> bool:
        return bool(change) and all(
            path in self.users and self.users[path] == new for path, new in change.items()
        )

    def _users_trees(self, baseline: Baseline, new: Mapping[str, Commit]) -> frozenset[str]:
        before = self._trees[baseline.tree] if baseline.tree else {}
        trees = {commit.tree: self._trees[commit.tree] for commit in new.values()}
        return frozenset(
            tree for tree, files in trees.items() if self._is_users(_difference(before, files))
        )

    def _compared(self, facts: History, old: set[str]) -> History:
        """As `guard.git.history`: only what has two times, or stands in a rewritten history, is compared."""
        plain = [one for one in facts.commits.values() if one.oid in self.made]
        written = [one for one in (*plain, *facts.dropped) if one.author[1] != one.committed]
        authors = {one.author for one in written}
        earlier = [one for one in self._listed(old) if one.author in authors]
        if facts.removed or facts.dropped:
            written = [*plain, *facts.dropped, *facts.removed]
        elif not earlier:
            written = []
        changes = {one.oid: self._described(one) for one in (*earlier, *written)}
        return replace(facts, earlier=frozenset(one.oid for one in earlier), changes=changes)

    def _described(self, commit: Commit) -> CommitChange:
        change = self._change(commit)
        before = self.files(commit.parents[0]) if commit.parents else {}
        patch = [
            (path, sorted(set(before.get(path, ())) ^ set(lines or ())))
            for path, lines in sorted(change.items())
        ]
        return CommitChange(frozenset(change), frozenset({_hash(patch)}))

    def _change(self, commit: Commit) -> dict[str, Lines | None]:
        """What a commit changes: each path with its lines afterwards, None where it is gone."""
        before = self.files(commit.parents[0]) if commit.parents else {}
        return _difference(before, self._trees[commit.tree])

    def _make(
        self,
        files: Files,
        parents: tuple[str, ...],
        *,
        author: tuple[str, int] | None = None,
        rescued: bool = False,
    ) -> str:
        now = next(self._ticks)
        tree = _hash(sorted(files.items()))
        self._trees[tree] = dict(files)
        author = author or ("somebody", now)
        oid = _hash([tree, parents, author, now])
        self.commits[oid] = Commit(oid, tree, parents, "", rescued, author, now)
        return oid

    def _move(self, oid: str, *, made: bool = True) -> str:
        if made:
            self.made.add(oid)
        if self.branch:
            self.refs[self.branch] = oid
        else:
            self.detached = oid
        return oid

    def _parents(self) -> tuple[str, ...]:
        return (self.head,) if self.head else ()

    def _tips(self) -> list[str]:
        return [*self.refs.values(), *([self.head] if self.head else [])]

    def _listed(self, oids: set[str]) -> tuple[Commit, ...]:
        return tuple(self.commits[oid] for oid in reversed(self.commits) if oid in oids)

    def _reachable(self, starts: Iterable[str]) -> set[str]:
        found: set[str] = set()
        ends = list(starts)
        while ends:
            oid = ends.pop()
            if oid not in found:
                found.add(oid)
                ends += self.commits[oid].parents
        return found

    @staticmethod
    def _changed(files: Files, changes: Mapping[str, Lines | None]) -> Files:
        after = {**files, **changes}
        return {path: lines for path, lines in after.items() if lines is not None}


def _difference(before: Files, after: Files) -> dict[str, Lines | None]:
    differing = {path for path, _ in before.items() ^ after.items()}
    return {path: after.get(path) for path in sorted(differing)}


def _hash(value: object) -> str:
    return sha1(repr(value).encode()).hexdigest()
