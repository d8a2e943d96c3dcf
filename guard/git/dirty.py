"""What differs in a work tree from the last commit, with the identity of each file's content.

Git lists the files, guard reads them itself. Submodules and nested repositories are asked one by one, because git would ask
them under settings of their own.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby

from guard.core.events.baseline import DirtyFile
from guard.core.paths import spelled
from guard.errors import RepositoryProblem
from guard.git.call import TIME_LIMIT_SECONDS
from guard.git.content import Contents, Identity
from guard.git.locate import Repository, at
from guard.git.reading import Reader
from guard.git.status import Entry, Tracked, entries, status, tracked_specially, unfiltered

MOST_UNTRACKED = 1000
MOST_CHANGED = 5000
"""A folder at the top of the work tree that has more dirty files is listed as one, known by names, sizes and times."""
_MOST_NESTED = 50


def dirty(
    repository: Repository, environ: Mapping[str, str], time_limit: float = TIME_LIMIT_SECONDS
) -> tuple[DirtyFile, ...]:
    """Every path that is staged, changed or untracked, and what is there; nothing that is ignored."""
    git = unfiltered(Reader(repository, environ, time_limit))
    answer = status(git)
    try:
        root = os.open(repository.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise RepositoryProblem(f"{repository.root}: {error.strerror}", "restore it") from None
    try:
        files = _WorkTree(git, Contents(root)).files(answer)
        return tuple(sorted(files, key=lambda file: file.path))
    finally:
        os.close(root)


@dataclass
class _WorkTree:
    git: Reader
    contents: Contents
    nested: dict[bytes, "_Nested | None"] = field(default_factory=dict)

    def files(self, answer: bytes) -> Iterator[DirtyFile]:
        found = {entry.path: entry for entry in entries(answer)}
        for tracked in tracked_specially(self.git):
            if tracked.path not in found and self._differs(tracked):
                found[tracked.path] = Entry(tracked.path, unstaged=True)
        listed = sorted(entry for entry in found.values() if not self._is_our_own(entry))
        for untracked, most in ((True, MOST_UNTRACKED), (False, MOST_CHANGED)):
            group = [entry for entry in listed if entry.untracked == untracked]
            for folder, members in groupby(group, key=lambda entry: _top(entry.path)):
                yield from self._described(folder, list(members), most)

    def _differs(self, tracked: Tracked) -> bool:
        """Whether there is something on disk of which `git status` does not speak."""
        if tracked.hidden:
            return self.contents.blob(tracked.path, tracked.blob) not in (None, tracked.blob)
        nested = self._nested(tracked.path)
        return nested is not None and not nested.clean

    def _is_our_own(self, entry: Entry) -> bool:
        """A work tree of this very repository that has nothing uncommitted: its commits are counted where they are."""
        nested = self._nested(entry.path) if entry.path.endswith(b"/") else None
        return nested is not None and nested.clean and nested.linked

    def _nested(self, path: bytes) -> "_Nested | None":
        if path not in self.nested and len(self.nested) < _MOST_NESTED:
            self.nested[path] = _look_into(self.git, path)
        return self.nested.get(path)

    def _described(self, folder: bytes, members: list[Entry], most: int) -> Iterator[DirtyFile]:
        if len(members) <= most:
            yield from (_file(entry, self._identity(entry.path)) for entry in members)
            return
        whole = Entry(
            folder or b"./",
            staged=any(entry.staged for entry in members),
            unstaged=any(entry.unstaged for entry in members),
            untracked=members[0].untracked,
        )
        content = self.contents.combined(entry.path for entry in members)
        yield _file(whole, Identity("folder", content, f"{len(members)} files"))

    def _identity(self, path: bytes) -> Identity:
        found = self.contents.identity(path)
        if found.kind != "folder":
            return found
        nested = self._nested(path)
        return Identity("repository", nested.digest if nested else None, found.stamp)


def _top(path: bytes) -> bytes:
    """The folder at the top in which the path lies; nothing for what lies at the top itself."""
    first, slash, rest = path.partition(b"/")
    return first + b"/" if slash and rest else b""


def _file(entry: Entry, identity: Identity) -> DirtyFile:
    return DirtyFile(
        path=spelled(entry.path),
        kind=identity.kind,
        content=identity.content,
        stamp=identity.stamp,
        index=entry.blob,
        staged=entry.staged,
        unstaged=entry.unstaged,
        untracked=entry.untracked,
    )


@dataclass(frozen=True)
class _Nested:
    """A repository inside the work tree."""

    digest: str
    """Over its HEAD and all that is uncommitted in it."""
    clean: bool
    linked: bool
    """Whether it is a work tree of the same repository."""


def _look_into(git: Reader, path: bytes) -> _Nested | None:
    """None if there is no repository at the path, or one that git cannot tell anything of."""
    root = git.repository.root / os.fsdecode(path)
    try:
        if not os.path.lexists(root / ".git"):
            return None
        found = at(root)
        answer = status(unfiltered(Reader(found, git.environ, git.time_limit)))
    except (OSError, RepositoryProblem):
        return None
    digest = sha256(answer)
    listed = [entry.path for entry in entries(answer)]
    for name in listed:
        try:
            known = os.lstat(root / os.fsdecode(name))
        except OSError:
            continue
        digest.update(b"%d %d;" % (known.st_size, known.st_mtime_ns))
    return _Nested(digest.hexdigest(), not listed, found.common_dir == git.repository.common_dir)
