"""Find the commits in which the agent committed anew what others made and a fetch, a push or a bundle brought.

Such a commit has nothing but content that theirs have at the same paths, or it makes the same change as one of theirs or as all
of theirs together. What is in a commit's own history already repeats nothing: to bring that back is work.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from guard.core.work.history import Commit, Commits, History, reachable_from
from guard.git.commits import diff_files, read_changes, read_patches
from guard.git.reader import RepositoryReader

_MOST_COMPARED = 500
_MOST_THEIRS = 2000
_MOST_RANGES = 20
_EMPTY = (
    "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
)
"""The id of the empty blob, in both object formats of git."""


class PathInCommit(NamedTuple):
    """What a commit has at a path that it changes."""

    path: bytes
    mode: bytes
    blob: str

    @property
    def is_gone(self) -> bool:
        return not self.blob.strip("0")


def has_content(entry: PathInCommit) -> bool:
    """Tell whether there is something that shows where it came from: a file that is deleted or empty does not."""
    return not entry.is_gone and entry.blob not in _EMPTY


def read_entries(
    git: RepositoryReader, lines: Collection[str], *options: str
) -> Iterator[tuple[str, list[PathInCommit]]]:
    """Yield each commit with what it has at the paths that it changes; the lines are those of `diff_files`."""
    for header, changed in diff_files(git, lines, *options):
        yield header, [_entry(raw, path) for raw, path in changed]


def _entry(raw: bytes, path: bytes) -> PathInCommit:
    # The modes of each parent and of the commit, then the blobs in the same order.
    words = raw.split(b" ")
    parents = len(words[0]) - len(words[0].lstrip(b":"))
    return PathInCommit(path, words[parents], words[2 * parents + 1].decode())


def find_repeated_work(
    git: RepositoryReader,
    facts: History,
    own: Iterable[Commit],
    theirs: Commits,
    tips: Sequence[str],
    sent: Collection[str],
) -> frozenset[str]:
    """Return the agent's commits that only repeat theirs; `sent` are commits that others may have from the agent."""
    plain = (commit for commit in own if len(commit.parents) == 1 and not commit.rescued)
    commits = {commit.oid: commit for commit in islice(plain, _MOST_COMPARED)}
    if not commits or not theirs:
        return frozenset()
    changes = dict(read_entries(git, list(commits)))
    brought = _Brought(git, facts, theirs, tips, sent)
    brought.read()
    touching = {oid: found for oid, found in changes.items() if brought.may_have(found)}
    return frozenset(oid for oid in touching if brought.has_all(commits[oid], touching[oid])) | (
        brought.find_same_changes([commits[oid] for oid in touching])
    )


class _Brought:
    """What the commits of others changed."""

    def __init__(
        self,
        git: RepositoryReader,
        facts: History,
        theirs: Commits,
        tips: Sequence[str],
        sent: Collection[str],
    ) -> None:
        self.git, self.facts, self.tips, self.sent = git, facts, tips, sent
        self.theirs = dict(islice(theirs.items(), _MOST_THEIRS))
        self.makers: dict[PathInCommit, list[str]] = {}
        self.paths: set[bytes] = set()

    def read(self) -> None:
        for oid, entries in read_entries(self.git, list(self.theirs), "-c"):
            for entry in entries:
                self.makers.setdefault(entry, []).append(oid)
                self.paths.add(entry.path)

    def may_have(self, entries: Sequence[PathInCommit]) -> bool:
        """Tell whether they have such a path, and something in it: to delete or to empty a file is nothing that tells."""
        return any(entry.path in self.paths for entry in entries) and any(
            has_content(entry) for entry in entries
        )

    def has_all(self, commit: Commit, entries: Sequence[PathInCommit]) -> bool:
        before = self._history_of(commit)
        return all(
            any(self._may_precede(oid, commit, before) for oid in self.makers.get(entry, ()))
            for entry in entries
        )

    def _history_of(self, commit: Commit) -> set[str]:
        return reachable_from([commit.oid], self.facts.commits)

    def _may_precede(self, oid: str, commit: Commit, before: Collection[str]) -> bool:
        # What was pushed from here can come back as a commit of others.
        if oid in before:
            return False
        theirs = self.theirs[oid].committed
        return theirs < commit.committed or (
            theirs == commit.committed and commit.oid not in self.sent
        )

    def find_same_changes(self, commits: Sequence[Commit]) -> frozenset[str]:
        singles = [oid for oid, commit in self.theirs.items() if len(commit.parents) < 2]
        changes = read_changes(self.git, [*(commit.oid for commit in commits), *singles])
        makers: dict[str, list[str]] = {}
        for oid in singles:
            for patch in changes[oid].patches if oid in changes else ():
                makers.setdefault(patch, []).append(oid)
        found = set[str]()
        for commit in commits:
            before = self._history_of(commit)
            same = (oid for patch in changes[commit.oid].patches for oid in makers.get(patch, ()))
            if any(self._may_precede(oid, commit, before) for oid in same):
                found.add(commit.oid)
        rest = [commit for commit in commits if commit.oid not in found]
        return frozenset(found | set(self._find_squashes(rest)))

    def _find_squashes(self, commits: Iterable[Commit]) -> Iterator[str]:
        """Yield the commits that make the change of a whole branch of theirs, beside other changes to the same files."""
        pairs = ((commit, tip) for commit in commits for tip in self.tips if tip in self.theirs)
        for commit, tip in islice(pairs, _MOST_RANGES):
            if not self._may_precede(tip, commit, self._history_of(commit)):
                continue
            base = self.git.line("merge-base", commit.parents[0], tip)
            if base is not None and self._patch(f"{tip} {base}") == self._patch(commit.oid):
                yield commit.oid

    def _patch(self, line: str) -> str | None:
        return next((patch for _, patch in read_patches(self.git, [line])), None)
