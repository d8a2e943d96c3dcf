"""Gather from git the facts about the commits since a baseline.

Usually two calls tell all: where the refs stand, and which commits are new. More is asked only where history was rewritten, or
where a commit was written before it was committed.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import field, replace
from itertools import chain, islice
from typing import NamedTuple

from guard.core.base.first_use import dataclass, late_pattern
from guard.core.base.text import plural
from guard.core.iteration.baseline import Baseline
from guard.core.work.history import Commit, Commits, History, foreign_commits, reachable_from
from guard.errors import RepositoryProblem
from guard.git import reflogs
from guard.git.commits import (
    CHILDREN_FIRST,
    CommitList,
    list_commits,
    merges_with_own_lines,
    read_changes,
)
from guard.git.gitdir_files import read_fetched_oids, shallow_digest
from guard.git.reader import RepositoryReader
from guard.git.reflogs import Move
from guard.git.refs import Refs, missing_commits, read_refs
from guard.git.repeats import find_repeated_work
from guard.git.users_work import with_users_work

MOST_COMMITS = 100_000
_MOST_GONE = 10_000
_BRANCHES = ("refs/heads/", "worktrees/", "main-worktree/")
_LOCAL = (*_BRANCHES, "refs/tags/")
_REMOTE = "refs/remotes/"
_MOST_OLD = 20_000
_MOST_COMPARED = 500
_OID = late_pattern(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def read_history(
    git: RepositoryReader,
    baseline: Baseline,
    others: Container[str] = (),
    noted: frozenset[str] = frozenset(),
) -> History:
    """Read all that counting needs to know of what happened since the baseline.

    `others` are the HEADs and branches of work trees in which iterations of their own are under way: what they did is theirs.
    `noted` are commits that guard's hook in git saw being made here.
    """
    since = _Since(git, baseline, read_refs(git), others, noted)
    facts = since.facts()
    since.warn_of_unknown_origin(facts)
    facts = _with_own_rescues(facts, baseline)
    facts = compare_suspects(since, facts)
    foreign = foreign_commits(facts)
    own = [commit for oid, commit in facts.commits.items() if oid not in foreign]
    facts = replace(facts, repeating=since.find_repeating(facts, own))
    facts = with_users_work(since.git, facts, baseline, own)
    since.warn_of_mails(facts, own)
    return replace(facts, warnings=tuple(since.warnings))


def compare_suspects(since: "_Since", facts: History) -> History:
    """Add to the facts what commits change that may repeat or replace others: earlier ones, or ones that were fetched.

    A commit that was picked, rebased or amended keeps its author and the time of writing, and gets a new time of committing. So
    only a commit with two times, or one that a reflog names as taken over, or one in a history that was rewritten, is compared.
    """
    git, foreign = since.git, foreign_commits(facts)
    own = [commit for oid, commit in facts.commits.items() if oid not in foreign]
    plain = [commit for commit in own if len(commit.parents) < 2]
    merges = [commit.oid for commit in own if len(commit.parents) > 1]
    suspects = [commit for commit in (*plain, *facts.dropped) if _is_suspect(commit, facts)]
    earlier: list[Commit] = []
    if suspects:
        earlier = _list_earlier(git, facts, suspects, since.before)
        earlier += _list_originals(since, facts, suspects)
    if facts.removed or facts.dropped:
        suspects = [*plain, *facts.dropped, *facts.removed]
    elif not earlier:
        suspects = []
    wanted = dict.fromkeys(commit.oid for commit in chain(_limit(earlier), _limit(suspects)))
    return replace(
        facts,
        earlier=frozenset(commit.oid for commit in earlier),
        changes=read_changes(git, wanted),
        resolving=merges_with_own_lines(git, merges[:_MOST_COMPARED]),
    )


def _is_suspect(commit: Commit, facts: History) -> bool:
    return commit.author[1] != commit.committed or commit.oid in facts.taken_over


def _list_earlier(
    git: RepositoryReader, facts: History, suspects: Iterable[Commit], before: Sequence[str]
) -> list[Commit]:
    """Commits of the baseline that were written by the same author at the same time as one that looks new."""
    authors = {commit.author for commit in suspects}
    old = list_commits(git, before, facts.around, _MOST_OLD).commits.values()
    return [commit for commit in old if commit.author in authors and len(commit.parents) < 2]


def _list_originals(since: "_Since", facts: History, suspects: Sequence[Commit]) -> list[Commit]:
    """Fetched commits of which the agent made copies; if what it made was there first, they are the copies."""
    theirs = since.list_theirs(facts)
    foreign = foreign_commits(facts)
    own = [commit for oid, commit in facts.commits.items() if oid not in foreign]
    authors = {commit.author for commit in suspects}
    authors -= {commit.author for commit in own if not _is_suspect(commit, facts)}
    first: dict[tuple[str, int], int] = {}
    for commit in own:
        first[commit.author] = min(commit.committed, first.get(commit.author, commit.committed))
    made = {commit.oid for commit in own}
    return [
        commit
        for oid, commit in theirs.items()
        if oid not in made
        and commit.author in authors
        and len(commit.parents) < 2
        and commit.committed <= first.get(commit.author, commit.committed)
    ]


def _limit(commits: Iterable[Commit]) -> Iterable[Commit]:
    return islice(commits, 2 * _MOST_COMPARED)


def _with_own_rescues(facts: History, baseline: Baseline) -> History:
    # A trailer of another iteration was copied, by an amended commit for example: that commit is the agent's. If no
    # reflog tells of a copy, it is what another iteration rescued, on a branch of its own.
    if baseline.revision is not None:
        return facts
    ours = f"{baseline.run}/{baseline.iteration}"
    strange = {
        oid for oid, commit in facts.commits.items() if commit.rescued and commit.mark != ours
    }
    commits = {
        oid: commit._replace(rescued=commit.rescued and oid not in strange)
        for oid, commit in facts.commits.items()
    }
    return replace(facts, commits=commits, beside=facts.beside | (strange - facts.made_here))


class _Moves(NamedTuple):
    """The moves since the baseline, from the reflogs, by work tree as far as that is known."""

    own: list[Move]
    theirs: list[Move]
    """Of HEADs of others."""
    branches: list[Move]
    """Of branches that moved, by whomever: the same moves once more, and those of work trees that are gone."""

    def all(self) -> list[Move]:
        return [*self.own, *self.theirs, *self.branches]

    def list_made_here(self) -> frozenset[str]:
        return _made_oids(self.own) | (_made_oids(self.branches) - _made_oids(self.theirs))


@dataclass
class _Since:
    """A baseline beside what the repository is now."""

    git: RepositoryReader
    baseline: Baseline
    now: Refs
    others: Container[str] = ()
    noted: frozenset[str] = frozenset()
    warnings: list[str] = field(default_factory=list)
    made: frozenset[str] = frozenset()
    """Commits that a trace shows as made in this repository, in whichever work tree."""
    sent: set[str] = field(default_factory=set)
    """Commits that were pushed from here."""
    silent: bool = False
    """Whether a remote-tracking ref has no reflog, of which the warnings tell."""

    mailed: frozenset[str] = frozenset()
    """Commits that `git am` made."""
    _theirs: Commits | None = None
    _tips: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        baseline, now = self.baseline, self.now
        self.known = _set(*baseline.refs.values(), *baseline.stash, baseline.head)
        self.there = _set(*now.names.values(), now.head)
        self.before = self._starts()

    def _starts(self) -> list[str]:
        # The pin stands for all tips of the baseline, while it is what guard made it.
        baseline = self.baseline
        if baseline.pin is None or baseline.pinned is None:
            return sorted(self.known)
        if self.now.own.get(baseline.pin) == baseline.pinned:
            return [baseline.pinned]
        self.warnings.append(f"another program moved or deleted {baseline.pin} since the baseline")
        if baseline.refs_omitted:
            omitted = plural(baseline.refs_omitted, "ref")
            self.warnings.append(f"guard counts what {omitted} led to at the baseline as new")
        return sorted(self.known)

    def facts(self) -> History:
        baseline, now = self.baseline, self.now
        names = self._names()
        theirs = {name: names[name] for name in names if name in self.others and name != now.branch}
        new = self._read_new(_set(*names.values(), now.head) - self.known)
        moves = self._moves()
        self.made = _made_oids(moves.all()) | self.noted
        self.mailed = frozenset(move.new for move in moves.all() if move.is_by(reflogs.MAILED))
        made = moves.list_made_here() | self.noted
        fetched = frozenset(self._list_fetched(moves.all(), new))
        return History(
            before_head=baseline.head,
            before_branch=baseline.branch,
            before_tree=baseline.tree,
            head=now.head,
            branch=now.branch,
            names={name: oid for name, oid in names.items() if name not in theirs},
            commits=new.commits,
            around=new.around,
            fetched=fetched,
            beside=frozenset({*theirs.values(), *(move.new for move in moves.theirs)}),
            strange=frozenset(self._list_strange(new, moves, fetched)),
            made_here=made,
            taken_over=frozenset(
                move.new for move in moves.all() if move.is_by(reflogs.TAKEN_OVER)
            ),
            removed=self._list_removed(new, moves),
            dropped=self._list_dropped(made - new.commits.keys()),
            stashed=self._list_stashed(),
        )

    def _names(self) -> dict[str, str]:
        # Of a revision named afterwards, HEAD is all that can be compared.
        if self.baseline.revision is None:
            names = self.now.names.items()
            return {name: oid for name, oid in names if name.startswith(_LOCAL)}
        branch, head = self.now.branch, self.now.head
        return {branch: head} if branch and head else {}

    def _read_new(self, tips: set[str]) -> CommitList:
        # A file in the repository can say that history ends anywhere: if it came since, it is not believed at first.
        trusting = self.git
        if shallow_digest(self.git.repository) != self.baseline.shallow:
            self.warnings.append("the shallow history ends elsewhere than at the baseline")
            if self.baseline.shallow is None:
                self.git = trusting.with_variable("GIT_SHALLOW_FILE", "")
        try:
            new = self._list_new(tips)
        except RepositoryProblem as error:
            self.before = self._remaining_tips(error)
            self.git = trusting
            new = self._list_new(tips)
        if len(new.commits) >= MOST_COMMITS:
            self.warnings.append(f"guard counted only the first {MOST_COMMITS} new commits")
        return new

    def _list_new(self, tips: set[str]) -> CommitList:
        return list_commits(self.git, sorted(tips), self.before, MOST_COMMITS, CHILDREN_FIRST)

    def _remaining_tips(self, error: RepositoryProblem) -> list[str]:
        """The tips of the baseline that are still there; without its HEAD nothing can be counted."""
        gone = set(missing_commits(self.git, self.before))
        if gone & _set(self.baseline.head, self.baseline.pinned):
            raise RepositoryProblem(
                f"the repository no longer has the baseline ({error.message})",
                "record a new one with `guard baseline`, or name a commit with --baseline",
            ) from None
        if not gone and not self.git.repository.common_dir.joinpath("shallow").exists():
            raise error
        if gone:
            self.warnings.append(f"guard cannot find {plural(len(gone), 'tip')} of the baseline")
        return [oid for oid in self.before if oid not in gone]

    def _moves(self) -> _Moves:
        """What HEAD did in every work tree, and what became of each branch that moved."""
        git, baseline = self.git, self.baseline
        found = _Moves([], [], [])
        if baseline.revision is not None:
            moves = reflogs.read_moves(git, "HEAD")
            if any(move.new == baseline.head for move in moves):
                found.own.extend(reflogs.moves_after(moves, {baseline.head}))
            return found
        starts = {**baseline.refs, "HEAD": baseline.head}
        for name, moves in reflogs.read_moves_of_heads(git, baseline.reflogs, starts):
            (found.theirs if name in self.others else found.own).extend(moves)
        for name, oid in self.now.names.items():
            if name.startswith("refs/heads/") and baseline.refs.get(name) != oid:
                found.branches.extend(self._moves_since_baseline(name))
        return found

    def _moves_since_baseline(self, name: str) -> list[Move]:
        # A ref that is new may have the reflog of an old one, which was renamed.
        start = self.baseline.refs.get(name)
        return reflogs.moves_after(
            reflogs.read_moves(self.git, name), {start} if start else self.known
        )

    def _list_fetched(self, moves: Iterable[Move], new: CommitList) -> Iterator[str]:
        """The commits to which a fetch or a pull has led."""
        for move in moves:
            if move.is_by(reflogs.FORWARDED):
                yield move.new
            elif move.is_by(reflogs.PULLED_MERGE) and move.new in new.commits:
                yield from new.commits[move.new].parents[1:]
        brought = read_fetched_oids(self.git.repository) & new.commits.keys()
        for name, oid in self.now.names.items():
            if not name.startswith(_REMOTE) or oid in self.known:
                continue
            since = self._moves_since_baseline(name)
            yield from (move.new for move in since if move.is_by(reflogs.FETCHED))
            self.sent |= {move.new for move in since if not move.is_by(reflogs.FETCHED)}
            is_silent = not since and oid in new.commits and oid not in brought - self.sent
            if is_silent and not name.endswith("/HEAD"):
                self.silent = True
                self.warnings.append(f"{name} has no reflog: guard counts pulled commits as new")
        yield from brought - self.sent

    def _list_strange(
        self, new: CommitList, moves: _Moves, fetched: frozenset[str]
    ) -> Iterator[str]:
        """The commits that a reflog shows as arrived and none as made here, of a committer who did nothing else here."""
        if self.baseline.revision is not None:
            return
        found = moves.all()
        arrived = reachable_from((move.new for move in found), new.commits) - self.made
        arrived -= reachable_from(fetched, new.commits)
        if not arrived:
            return
        people = {move.email for move in found if not move.is_by(reflogs.FORWARDED)}
        people |= {self.git.line("config", "user.email") or ""}
        for oid in arrived:
            commit = new.commits[oid]
            if not commit.rescued and commit.committer not in people:
                yield oid

    def list_theirs(self, facts: History) -> Commits:
        """Return the commits of others that came since the baseline, the newest first."""
        if self._theirs is None:
            self._tips = self._list_fetched_tips(facts)
            found = list_commits(self.git, self._tips, self.before, _MOST_OLD, CHILDREN_FIRST)
            self._theirs = found.commits
        return self._theirs

    def find_repeating(self, facts: History, own: Sequence[Commit]) -> frozenset[str]:
        """Return the agent's commits that have nothing in them but what others made."""
        if not own or self.baseline.revision is not None:
            return frozenset()
        sent = reachable_from(self.sent, facts.commits)
        # What other work trees of this repository made is not from elsewhere, and what was pushed may come back as a copy.
        here = self.made | sent | reachable_from(facts.beside, facts.commits)
        pushed = [one for one in (*own, *facts.dropped) if one.oid in sent | self.sent]
        authors = {one.author for one in pushed if not _is_suspect(one, facts)}
        theirs = {
            oid: commit
            for oid, commit in self.list_theirs(facts).items()
            if oid not in here and commit.author not in authors
        }
        return find_repeated_work(self.git, facts, own, theirs, self._tips, sent)

    def _list_fetched_tips(self, facts: History) -> list[str]:
        """Return where what others made ends, on a branch or beside: commits that were pushed from here are not theirs."""
        names = self.now.names.items()
        found = {oid for name, oid in names if name.startswith(_REMOTE)} - self.known
        found |= read_fetched_oids(self.git.repository) - self.known
        found |= foreign_commits(facts)
        found -= reachable_from(self.sent, facts.commits) | self.made
        found = {oid for oid in found if _OID.fullmatch(oid)}
        return sorted(found - set(missing_commits(self.git, sorted(found)))) if found else []

    def warn_of_unknown_origin(self, facts: History) -> None:
        """Warn of commits that count though nothing tells where they were made."""
        if self.baseline.revision is not None or self.silent:
            return
        sure = foreign_commits(facts) | self.made | reachable_from(self.sent, facts.commits)
        unsure = [
            oid for oid, commit in facts.commits.items() if oid not in sure and not commit.rescued
        ]
        if unsure:
            self.warnings.append(
                f"nothing tells where {plural(len(unsure), 'new commit')} came from: counted as the agent's"
            )

    def warn_of_mails(self, facts: History, own: Iterable[Commit]) -> None:
        """Warn of commits that count though another author wrote them: mails that `git am` applied."""
        strange = [
            commit
            for commit in own
            if commit.oid in self.mailed
            and commit.author[0] != commit.committer
            and commit.oid not in facts.repeating | facts.users
            and _patches_of(facts, [commit.oid]).isdisjoint(_patches_of(facts, facts.earlier))
        ]
        if strange:
            commits = plural(len(strange), "commit")
            self.warnings.append(
                f"another author wrote {commits} that `git am` applied: counted as the agent's"
            )

    def _list_removed(self, new: CommitList, moves: _Moves) -> tuple[Commit, ...]:
        """Commits that the branches of the baseline had, and that no ref has now; without those that others moved."""
        refs = self.baseline.refs.items()
        there = self.there | new.around.keys()
        branches = [name for name, oid in refs if name.startswith(_BRANCHES) and oid not in there]
        own = [name for name in branches if not self._is_theirs(name, moves)]
        tips = _set(self.baseline.head, *(self.baseline.refs[name] for name in own))
        return tuple(list_commits(self.git, tips - there, self.there, _MOST_GONE).commits.values())

    def _is_theirs(self, name: str, moves: _Moves) -> bool:
        """Whether a ref is checked out by others, or was moved by them alone; if it is deleted, whether they left it."""
        if name in self.others or not moves.theirs:
            return name in self.others
        if name not in self.now.names:
            return self.baseline.refs[name] in {move.old for move in moves.theirs}
        steps = {move.step for move in self._moves_since_baseline(name)}
        return bool(steps) and steps <= _steps(moves.theirs) - _steps(moves.own)

    def _list_dropped(self, made: frozenset[str]) -> tuple[Commit, ...]:
        """Commits that were made since, and that no ref has now."""
        suspects = made - self.known - self.there
        if not suspects:
            return ()
        gone = set(missing_commits(self.git, sorted(suspects)))
        if gone:
            self.warnings.append(f"git has deleted {plural(len(gone), 'new commit')} for good")
        found = list_commits(self.git, suspects - gone, [*self.there, *self.before], _MOST_GONE)
        return tuple(commit for oid, commit in found.commits.items() if oid in made)

    def _list_stashed(self) -> tuple[str, ...]:
        # Only the new entries of the stash; those that are gone are only kept by the pin.
        if self.baseline.revision is not None:
            return ()
        entries = reflogs.read_stash(self.git.repository, self.now.names.get("refs/stash"))
        gone = set(self.baseline.stash) - set(entries)
        if gone:
            self.warnings.append(f"the stash has lost {plural(len(gone), 'earlier change')}")
        return tuple(oid for oid in entries if oid not in self.baseline.stash)


def _patches_of(facts: History, oids: Iterable[str]) -> frozenset[str]:
    known = (facts.changes[oid].patches for oid in oids if oid in facts.changes)
    return frozenset[str]().union(*known)


def _made_oids(moves: Iterable[Move]) -> frozenset[str]:
    return frozenset(move.new for move in moves if move.is_by(reflogs.MADE))


def _steps(moves: Iterable[Move]) -> set[tuple[str, str]]:
    return {move.step for move in moves}


def _set(*oids: str | None) -> set[str]:
    return {oid for oid in oids if oid is not None}
