"""List what differs in a work tree from the last commit, with the identity of each file's content.

Git lists the files, guard reads them itself. Submodules and nested repositories are asked one by one, because git would ask
them under settings of their own. Where very many files are dirty, the folders at the top that have the most are listed as
one each; what was listed before, by itself or as a folder, is listed the same way again, so that the two can be compared.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from guard.core.base.first_use import dataclass
from guard.core.base.paths import spell, unspell
from guard.core.iteration.facts import DirtyFile
from guard.errors import RepositoryProblem
from guard.git import status
from guard.git.content_hash import ContentReader, Identity, stamp
from guard.git.locate import repository_at
from guard.git.named_files import open_root
from guard.git.reader import RepositoryReader
from guard.git.status import SpecialEntry, StatusEntry

MOST_LISTED = 2000
"""With more dirty files, folders are listed as one, known by names, sizes and times of what is in them."""
_MOST_NESTED = 200
_MOST_DEPTH = 10
_MOST_STAMPS = 20_000


@dataclass(frozen=True)
class Dirty:
    """The dirty files, each path once."""

    files: tuple[DirtyFile, ...]
    members: Mapping[str, Sequence[bytes]]
    """The paths for which a folder stands that is listed as one."""

    def paths(self, files: Iterable[DirtyFile]) -> Iterator[bytes]:
        for file in files:
            yield from self.members.get(file.path) or (unspell(file.path),)


def read_dirty(git: RepositoryReader, like: Iterable[DirtyFile] = ()) -> Dirty:
    """List every path that is staged, changed or untracked, with its content; ignored files are left out.

    `like` is an earlier listing that this one is to be compared with.
    """
    git = status.without_filters(git)
    answer = status.read_status(git)
    root = open_root(git.repository.root)
    try:
        return _WorkTree(git, ContentReader(root)).dirty(answer, {file.path for file in like})
    finally:
        os.close(root)


class NestedHead(NamedTuple):
    """What stands for a repository inside the work tree."""

    content: str
    """As in its entry of the list, over its HEAD and all that is uncommitted in it."""
    head: str | None


def read_nested_heads(
    git: RepositoryReader, paths: Iterable[bytes]
) -> Iterator[tuple[bytes, NestedHead]]:
    """Yield those of the paths at which a repository of its own is now."""
    git = status.without_filters(git)
    root = open_root(git.repository.root)
    try:
        tree = _WorkTree(git, ContentReader(root))
        for path in paths:
            nested = tree.find_nested(path)
            if nested is not None:
                yield path, NestedHead(nested.digest, nested.head)
    finally:
        os.close(root)


@dataclass
class _WorkTree:
    git: RepositoryReader
    contents: ContentReader
    nested: dict[bytes, "_Nested | None"] = field(default_factory=dict)
    asked: int = 0
    """How many repositories inside were asked."""

    def dirty(self, answer: bytes, known: Collection[str]) -> Dirty:
        entries = self._entries(answer)
        folders = _choose_folders([entry.path for entry in entries], known)
        inside: dict[str, list[StatusEntry]] = {}
        files = []
        for entry in entries:
            folder = _top(entry.path)
            if folder in folders and spell(entry.path) not in known:
                inside.setdefault(folder, []).append(entry)
            else:
                files.append(_file(entry, self._identity(entry.path)))
        files += [self._folder_entry(folder, members) for folder, members in inside.items()]
        files.sort(key=lambda file: file.path)
        members = {name: [entry.path for entry in found] for name, found in inside.items()}
        return Dirty(tuple(files), members)

    def _entries(self, answer: bytes) -> list[StatusEntry]:
        found = {entry.path: entry for entry in status.parse_status(answer)}
        for tracked in status.list_special(self.git):
            if tracked.path not in found and self._differs(tracked):
                found[tracked.path] = StatusEntry(tracked.path, unstaged=True)
        return sorted(entry for entry in found.values() if not self._is_our_own(entry))

    def _differs(self, tracked: SpecialEntry) -> bool:
        """Whether there is something on disk that `git status` does not list."""
        if tracked.hidden:
            return self.contents.blob(tracked.path, tracked.blob) not in (None, tracked.blob)
        nested = self.find_nested(tracked.path)
        return nested is not None and (not nested.clean or nested.head != tracked.blob)

    def _is_our_own(self, entry: StatusEntry) -> bool:
        # A work tree of this very repository that has nothing uncommitted: its commits are counted where they are.
        nested = self.find_nested(entry.path) if entry.path.endswith(b"/") else None
        return nested is not None and nested.clean and nested.linked

    def find_nested(self, path: bytes) -> "_Nested | None":
        if path not in self.nested:
            self.nested[path] = self._look_into(self.git, path, 0)
        return self.nested[path]

    def _look_into(self, git: RepositoryReader, path: bytes, depth: int) -> "_Nested | None":
        """Look into a repository inside another; None if there is nothing of its own at the path."""
        root = git.repository.root / os.fsdecode(path)
        if not os.path.lexists(root / ".git"):
            return self._by_stamps(root)
        self.asked += 1
        if self.asked > _MOST_NESTED or depth > _MOST_DEPTH:
            return self._by_stamps(root)
        try:
            found = repository_at(root)
            inner = status.without_filters(replace(git, repository=found, extra={}))
            answer = status.read_status(inner)
            modules = [entry.path for entry in status.list_special(inner) if not entry.hidden]
        except (OSError, RepositoryProblem):
            return self._by_stamps(root)
        listed = [entry.path for entry in status.parse_status(answer)]
        digest, clean = sha256(answer), not listed
        for name in listed:
            with suppress(OSError):
                known = os.lstat(root / os.fsdecode(name))
                digest.update(b"%d %d;" % (known.st_size, known.st_mtime_ns))
        # Git does not tell what is uncommitted in those further inside.
        for name in sorted({*modules, *(name for name in listed if name.endswith(b"/"))}):
            nested = self._look_into(inner, name, depth + 1)
            if nested is not None and not nested.clean:
                digest.update(b"%s\0%s;" % (name, nested.digest.encode()))
                clean = False
        is_linked = found.common_dir == git.repository.common_dir
        return _Nested(digest.hexdigest(), clean, is_linked, status.read_status_head(answer))

    def _by_stamps(self, root: Path) -> "_Nested | None":
        """Know a folder that git does not look into by names, sizes and times; None if it has nothing in it."""
        digest, left = sha256(), _MOST_STAMPS
        for folder, folders, names in os.walk(os.fsencode(root)):
            folders[:] = sorted(name for name in folders if name != b".git")
            for name in sorted(names):
                with suppress(OSError):
                    path = os.path.join(folder, name)
                    digest.update(b"%s\0%s;" % (path, stamp(os.lstat(path)).encode()))
                left -= 1
            if left <= 0:
                break
        return (
            _Nested(digest.hexdigest(), clean=False, linked=False) if left < _MOST_STAMPS else None
        )

    def _folder_entry(self, folder: str, members: list[StatusEntry]) -> DirtyFile:
        content = self.contents.hash_stamps(entry.path for entry in members)
        entry = StatusEntry(
            unspell(folder),
            staged=any(entry.staged for entry in members),
            unstaged=any(entry.unstaged for entry in members),
            untracked=any(entry.untracked for entry in members),
        )
        return _file(entry, Identity("folder", content, f"{len(members)} files"))

    def _identity(self, path: bytes) -> Identity:
        found = self.contents.identity(path)
        if found.kind != "folder":
            return found
        nested = self.find_nested(path)
        return Identity("repository", nested.digest if nested else None, found.stamp)


def _choose_folders(paths: Sequence[bytes], known: Collection[str]) -> set[str]:
    """The folders at the top to list as one: those that were so before, and the largest while there are too many."""
    sizes: dict[str, int] = {}
    for path in paths:
        if spell(path) not in known:
            sizes[_top(path)] = sizes.get(_top(path), 0) + 1
    chosen = {folder for folder in sizes if folder in known}
    left = sum(size for folder, size in sizes.items() if folder not in chosen)
    for folder in sorted(sizes, key=lambda name: -sizes[name]):
        if left <= MOST_LISTED:
            break
        if folder not in chosen:
            chosen.add(folder)
            left -= sizes[folder]
    return chosen


def _top(path: bytes) -> str:
    """The folder at the top in which the path lies, spelled; `./` for a path at the top itself."""
    first, slash, rest = path.partition(b"/")
    return spell(first) + "/" if slash and rest else "./"


def _file(entry: StatusEntry, identity: Identity) -> DirtyFile:
    return DirtyFile(
        path=spell(entry.path),
        **identity._asdict(),
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
    head: str | None = None
    """The commit that is checked out in it."""
