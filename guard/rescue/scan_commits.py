"""Search the agent's own commits for secrets, by the rules of the rescue, and within bounds.

A secret stays in the history when a later commit removes it, so every commit is looked at, not only the last one. What the
repository had before is no news: the lines that a commit left as they were, the file at the baseline, a file that was renamed.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from guard.core.base.paths import path_line, unspell
from guard.core.check.events import CommittedSecret
from guard.core.iteration.baseline import Baseline
from guard.core.rescue.secrets import (
    SENSITIVE_NAME,
    Hit,
    drop_allowed,
    find_added_secrets,
    find_secrets,
    has_new_sensitive_name,
    has_sensitive_name,
)
from guard.core.snapshots.paths import folders_above
from guard.core.work.history import Commit
from guard.errors import RepositoryProblem
from guard.git.commits import CHILDREN_FIRST, diff_files, list_commits
from guard.git.locate import Repository, repository_at
from guard.git.reader import RepositoryReader
from guard.git.refs import missing_commits
from guard.git.status import list_special
from guard.snapshots.objects import read_blobs

MOST_FILE_BYTES = 8 * 1024**2
_MOST_BYTES = 64 * 1024**2
_MOST_FILES = 20_000
_MOST_COMMITS = 2_000
_MOST_SECONDS = 20.0
_MOST_NESTED = 50
_MOST_NAMED = 100
_LINK, _GITLINK, _NOTHING = b"120000", b"160000", b"000000"


@dataclass
class CommitScan:
    """The secrets in the agent's commits, and what was not searched."""

    secrets: list[CommittedSecret] = field(default_factory=list)
    not_scanned: list[str] = field(default_factory=list)

    def add(self, other: "CommitScan") -> None:
        self.secrets = [*self.secrets, *other.secrets][:_MOST_NAMED]
        self.not_scanned = [*self.not_scanned, *other.not_scanned][:_MOST_NAMED]


class _Changed(NamedTuple):
    """One file of one commit that has another content than in every parent of it."""

    commit: str
    path: bytes
    blob: str
    old_blobs: tuple[str, ...]
    is_new: bool
    is_file: bool


class _Removed(NamedTuple):
    """One file that a commit removed."""

    path: bytes
    blob: str


def scan_commits(
    git: RepositoryReader,
    commits: Sequence[Commit],
    baseline: str | None,
    allowed: str,
    most_seconds: float = _MOST_SECONDS,
    folder: bytes = b"",
) -> CommitScan:
    """Search these commits, which are given newest first; a git that cannot answer is part of the result.

    `folder` is where the repository lies in the one that is checked: its paths are named and allowed from there.
    """
    scan = CommitScan()
    oldest_first = list(reversed(commits))
    if len(oldest_first) > _MOST_COMMITS:
        more = len(oldest_first) - _MOST_COMMITS
        scan.not_scanned.append(f"the oldest {more} of {len(oldest_first)} commits: too many")
        oldest_first = oldest_first[-_MOST_COMMITS:]
    try:
        _SecretSearch(git, baseline, allowed, scan, most_seconds, folder).run(oldest_first)
    except RepositoryProblem as error:
        scan.not_scanned.append(f"the rest of the commits: {error.message}"[:512])
    scan.secrets = scan.secrets[:_MOST_NAMED]
    scan.not_scanned = scan.not_scanned[:_MOST_NAMED]
    return scan


def scan_nested(
    git: RepositoryReader, names: Iterable[bytes], baseline: Baseline, allowed: str
) -> CommitScan:
    """Search the commits that were made since the baseline in submodules, and in the repositories of these names."""
    scan, until = CommitScan(), time.monotonic() + _MOST_SECONDS
    dirty = {unspell(file.path).rstrip(b"/") for file in baseline.dirty}
    named = dict.fromkeys(name.rstrip(b"/") for name in names)
    waiting = [(git, baseline.head, b"", folder) for folder in {**named, **_list_modules(git)}]
    for _ in range(_MOST_NESTED):
        if not waiting:
            break
        outer, head, prefix, name = waiting.pop(0)
        folder = prefix + name
        with suppress(OSError, RepositoryProblem):
            inner = replace(outer, repository=_find_nested(outer, name), extra={})
            before = _read_gitlink(outer, head, name)
            waiting += [(inner, before, folder + b"/", below) for below in _list_modules(inner)]
            # Where the user had changes, the dates alone tell the user's commits from the agent's.
            is_mixed = not dirty.isdisjoint((folder, *folders_above(folder)))
            commits = _list_since(inner, before, baseline.at if is_mixed else None)
            left = until - time.monotonic()
            if commits:
                scan.add(scan_commits(inner, commits, before, allowed, left, folder))
    return scan


def _list_modules(git: RepositoryReader) -> dict[bytes, None]:
    with suppress(RepositoryProblem):
        if (git.repository.git_dir / "modules").is_dir():
            return {entry.path: None for entry in list_special(git) if not entry.hidden}
    return {}


def _find_nested(git: RepositoryReader, folder: bytes) -> Repository:
    found = repository_at(git.repository.root / os.fsdecode(folder))
    if found.common_dir == git.repository.common_dir:
        raise RepositoryProblem("a work tree of the same repository", "its commits are counted")
    return found


def _read_gitlink(git: RepositoryReader, baseline: str | None, folder: bytes) -> str | None:
    """Return the commit of a submodule at the baseline; None if it was none."""
    if baseline is None:
        return None
    listed = git.ask("ls-tree", "-z", "--full-tree", baseline, "--", os.fsdecode(folder))
    words = listed.partition(b"\t")[0].split()
    return words[2].decode() if words[:1] == [_GITLINK] else None


def _list_since(
    git: RepositoryReader, before: str | None, since: datetime | None
) -> Sequence[Commit]:
    """Return the commits of HEAD and of all branches that neither a remote has nor the user made before."""
    refs = ("for-each-ref", "--format=%(objectname)")
    heads = git.ask("rev-parse", "--verify", "--quiet", "HEAD", codes=(0, 1)).decode().split()
    heads += git.ask(*refs, "refs/heads/").decode().split()
    known = {before} - set(missing_commits(git, [before])) if before else set[str]()
    known |= set(git.ask(*refs, "refs/remotes/").decode().split())
    listed = list_commits(git, heads, known, _MOST_COMMITS, CHILDREN_FIRST).commits.values()
    begun = int(since.timestamp()) if since is not None else 0
    return [commit for commit in listed if commit.committed >= begun]


class _SecretSearch:
    def __init__(
        self,
        git: RepositoryReader,
        baseline: str | None,
        allowed: str,
        scan: CommitScan,
        most_seconds: float,
        folder: bytes,
    ) -> None:
        self._git = git
        self._baseline = baseline
        self._allowed = allowed
        self._scan = scan
        self._until = time.monotonic() + most_seconds
        self._prefix = folder + b"/" if folder else b""
        self._told: set[tuple[bytes, Hit]] = set()

    def run(self, commits: Sequence[Commit]) -> None:
        files: list[_Changed] = []
        gone: dict[str, list[_Removed]] = {}
        for commit, changed, removed in _list_changes(self._git, commits):
            gone[commit] = removed
            files += changed
        if len(files) > _MOST_FILES:
            self._skip(f"{len(files) - _MOST_FILES} of {len(files)} changed files: too many")
        files = [file for file in files[:_MOST_FILES] if not self._is_named(file, gone)]
        by_blob: dict[str, list[_Changed]] = {}
        for file in files:
            by_blob.setdefault(file.blob, []).append(file)
        for blob, data in self._read(by_blob):
            if next(find_secrets(data), None) is None:
                continue
            # Each path by itself: what is allowed or known at one is news at another.
            first = {file.path: file for file in reversed(by_blob[blob])}
            for file in first.values():
                if time.monotonic() > self._until:
                    self._skip(f"{path_line(self._prefix + file.path)[:400]}: no time left")
                else:
                    self._compare(file, data, [removed.blob for removed in gone[file.commit]])

    def _is_named(self, file: _Changed, gone: Mapping[str, list[_Removed]]) -> bool:
        if not (
            file.is_new
            and file.is_file
            and has_new_sensitive_name(self._prefix + file.path, self._allowed)
        ):
            return False
        # What the user has committed under such a name has it by the user's own choice, and may be moved.
        gone_here = gone[file.commit]
        if any(old.blob == file.blob and has_sensitive_name(old.path) for old in gone_here):
            return False
        if self._was_there(file.path):
            return False
        self._report(file, [Hit(SENSITIVE_NAME, 0)])
        return True

    def _compare(self, file: _Changed, data: bytes, gone: Sequence[str]) -> None:
        before = [text for _, text in read_blobs(self._git.ask, [*file.old_blobs, *gone[:100]])]
        before += filter(None, [self._before(file.path)])
        found = find_added_secrets(data, *before)
        self._report(file, drop_allowed(found, self._prefix + file.path, self._allowed))

    def _report(self, file: _Changed, hits: Sequence[Hit]) -> None:
        for hit in hits:
            if (file.path, hit) not in self._told:
                self._told.add((file.path, hit))
                self._scan.secrets.append(
                    CommittedSecret(
                        path=path_line(self._prefix + file.path),
                        rule=hit.rule,
                        commit=file.commit,
                        line=hit.line or None,
                    )
                )

    def _read(self, files: Mapping[str, list[_Changed]]) -> Iterator[tuple[str, bytes]]:
        """Read the blobs that are not too large, while there is time."""
        total, seen = 0, set[str]()
        for blob, data in read_blobs(self._git.ask, list(files), MOST_FILE_BYTES):
            total += len(data)
            if total > _MOST_BYTES or time.monotonic() > self._until:
                self._skip(f"{len(files) - len(seen)} of {len(files)} changed files: too much")
                return
            seen.add(blob)
            yield blob, data
        for blob in files.keys() - seen:
            file = files[blob][0]
            large = f"larger than {MOST_FILE_BYTES // 1024**2} MB, or not readable"
            self._skip(
                f"{path_line(self._prefix + file.path)[:400]} in commit {file.commit[:10]}: {large}"
            )

    def _was_there(self, path: bytes) -> bool:
        return self._before(path) is not None

    def _before(self, path: bytes) -> bytes | None:
        """Return the file as it was at the baseline; None if it was not there."""
        if self._baseline is None:
            return None
        listed = self._git.ask(
            "ls-tree", "-z", "--full-tree", self._baseline, "--", os.fsdecode(path)
        )
        words = listed.partition(b"\t")[0].split()
        if len(words) < 3 or words[1] != b"blob":
            return None
        data = [text for _, text in read_blobs(self._git.ask, [words[2].decode()], MOST_FILE_BYTES)]
        return data[0] if data else b""

    def _skip(self, what: str) -> None:
        self._scan.not_scanned.append(what[:512])


def _list_changes(
    git: RepositoryReader, commits: Sequence[Commit]
) -> Iterator[tuple[str, list[_Changed], list[_Removed]]]:
    """Yield each commit with the files it changed and those that it removed."""
    plain = [commit.oid for commit in commits if len(commit.parents) < 2]
    merges = {commit.oid: commit.parents for commit in commits if len(commit.parents) > 1}
    found = {oid: [changed] for oid, changed in diff_files(git, plain)}
    lines = [f"{oid} {parent}" for oid, parents in merges.items() for parent in parents]
    for oid, changed in diff_files(git, lines):
        found.setdefault(oid, []).append(changed)
    for commit in commits:
        sides = found.get(commit.oid, [])
        if not sides or len(sides) < len(merges.get(commit.oid, (1,))):
            continue  # Nothing that some parent did not have already.
        yield commit.oid, list(_in_all(commit.oid, sides)), list(_removed(sides))


def _in_all(commit: str, sides: Sequence[list[tuple[bytes, bytes]]]) -> Iterator[_Changed]:
    paths = [{path: raw.split() for raw, path in side} for side in sides]
    for path, (_, mode, _, blob, _) in paths[0].items():
        if mode in (_NOTHING, _GITLINK) or not all(path in side for side in paths[1:]):
            continue
        old = [side[path] for side in paths]
        yield _Changed(
            commit=commit,
            path=path,
            blob=blob.decode(),
            old_blobs=tuple(words[2].decode() for words in old if words[0] != b":000000"),
            is_new=all(words[0] == b":000000" for words in old),
            is_file=mode != _LINK,
        )


def _removed(sides: Sequence[list[tuple[bytes, bytes]]]) -> Iterator[_Removed]:
    for side in sides:
        for raw, path in side:
            words = raw.split()
            if words[1] == _NOTHING:
                yield _Removed(path, words[2].decode())
