"""Trees of the project, and trees that guard makes of them: with submodules and Git LFS filled in, or mixed from two."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from guard.core.base.paths import path_line
from guard.errors import RepositoryProblem
from guard.prove.own_git import OwnGit, explain_unreadable
from guard.snapshots.objects import (
    DAMAGED,
    MISSING,
    Objects,
    ObjectUnreadable,
    blob_digest,
    read_blobs,
)
from guard.system.foreign_files import read_regular

FILE, LINK, FOLDER, SUBMODULE = b"100644", b"120000", b"40000", b"160000"
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.+\n)*?oid sha256:([0-9a-f]{64})\nsize (\d{1,18})\n"
)
_LONGEST_POINTER = 1024
_ATTRIBUTES = b".gitattributes"
_CONVERTED = re.compile(rb"\b(eol=crlf|working-tree-encoding=\S)")
_MOST_DEPTH = 8
_MOST_FILES = 2_000_000
_PIECE = 1024**2

FileEntry = tuple[bytes, str]
"""The mode and the object id of a file."""


@dataclass(frozen=True)
class TreeListing:
    """All files of a tree by path, and the trees in it."""

    files: Mapping[bytes, FileEntry]
    trees: frozenset[str]
    notes: tuple[str, ...] = ()
    """What a checkout of it lacks."""


class Trees:
    """Reads the trees of one project and makes new ones."""

    def __init__(self, git: OwnGit) -> None:
        self.git = git
        self._listings: dict[str, TreeListing] = {}
        self._commits: dict[str, str] = {}

    def raw_tree(self, commit: str) -> str:
        """The tree that a commit names."""
        if commit not in self._commits:
            with self.git.objects() as objects:
                self._commits[commit] = _read_commit(objects, commit)
        return self._commits[commit]

    def time_of(self, commit: str) -> str:
        """The time of a commit as git writes it: seconds and zone."""
        with self.git.objects() as objects, explain_unreadable(f"the commit {commit}"):
            head = objects.read(commit, "commit").partition(b"\n\n")[0]
        found = re.search(rb"^committer .*> (\d{1,15} [+-]\d{4})$", head, re.MULTILINE)
        return found[1].decode() if found else "0 +0000"

    def tree_of(self, commit: str) -> str:
        """The commit's tree, with submodules and the files of Git LFS in it as far as their contents are at hand."""
        raw = self.raw_tree(commit)
        found = self.listing(raw)
        files, notes = dict(found.files), list[str]()
        trees = set(found.trees)
        for path in [path for path, (mode, _) in files.items() if mode == SUBMODULE]:
            notes += self._take_in(path, files, trees, self.git.repository.root, 0)
        notes += self._replace_pointers(files)
        notes += self._name_conversions(files)
        tree = raw if files == found.files else self.write_tree(files, trees)
        self._listings[tree] = TreeListing(files, frozenset(trees), tuple(notes))
        return tree

    def listing(self, tree: str) -> TreeListing:
        """All files of a tree; `RepositoryProblem` if an object is missing or is not what its id says."""
        if tree not in self._listings:
            self._listings[tree] = _read_tree(self.git, tree)
        return self._listings[tree]

    def read(self, tree: str, path: bytes) -> bytes | None:
        """The bytes of a file in a tree; None if it has none of that name."""
        found = self.listing(tree).files.get(path)
        if found is None or found[0] == SUBMODULE:
            return None
        with self.git.objects() as objects, explain_unreadable(f"the file {path_line(path)}"):
            return objects.read(found[1])

    def compose(
        self,
        base_tree: str,
        remove: Iterable[bytes] = (),
        take: Iterable[tuple[bytes, str]] = (),
        replace: Mapping[bytes, bytes] | None = None,
    ) -> str:
        """Make a tree of another one: without some paths, with some as another tree has them, and with new contents.

        A path that the other tree does not have is removed. What is taken or replaced wins over what stands in its way.
        """
        base = self.listing(base_tree)
        files, trees, notes = dict(base.files), set(base.trees), dict.fromkeys(base.notes)
        for path in remove:
            files.pop(path, None)
        wins = set[bytes]()
        for path, source in take:
            other = self.listing(source)
            trees |= other.trees
            if files.pop(path, None) is None and path not in other.files:
                # A submodule: its files stand in place of its entry.
                inside = {name for name in files if name.startswith(path + b"/")}
                for name in inside:
                    del files[name]
                taken = {
                    name: entry
                    for name, entry in other.files.items()
                    if name.startswith(path + b"/")
                }
                files |= taken
                wins |= taken.keys()
            if path in other.files:
                files[path] = other.files[path]
                wins.add(path)
        for path, data in (replace or {}).items():
            mode = files.get(path, (FILE, ""))[0]
            files[path] = (mode if mode != SUBMODULE else FILE, self.git.write("blob", data))
            wins.add(path)
        _clear_the_way(files, wins)
        tree = self.write_tree(files, trees)
        self._listings[tree] = TreeListing(files, frozenset(trees), tuple(notes))
        return tree

    def write_tree(self, files: Mapping[bytes, FileEntry], existing: set[str]) -> str:
        """Write the trees for these files, but for those that exist; return the id of the top one."""
        folders: dict[bytes, list[tuple[bytes, bytes, str]]] = {b"": []}
        for path, (mode, oid) in files.items():
            folder, _, name = path.rpartition(b"/")
            for parent in parents_of(path):
                if parent in folders:
                    break
                folders[parent] = []
            folders[folder].append((name, mode, oid))
        tree = ""
        for folder in sorted(
            folders, key=lambda path: (path != b"", path.count(b"/")), reverse=True
        ):
            tree = self._write_folder(folders[folder], existing)
            if folder:
                parent, _, name = folder.rpartition(b"/")
                folders[parent].append((name, FOLDER, tree))
        return tree

    def _write_folder(self, entries: list[tuple[bytes, bytes, str]], existing: set[str]) -> str:
        # Git sorts a folder as if its name ended with a slash.
        entries.sort(key=lambda entry: entry[0] + (b"/" if entry[1] == FOLDER else b""))
        data = b"".join(
            b"%s %s\0%s" % (mode, name, bytes.fromhex(oid)) for name, mode, oid in entries
        )
        oid = self.git.id_of("tree", data)
        if oid not in existing:
            self.git.write("tree", data)
            existing.add(oid)
        return oid

    def _take_in(
        self, path: bytes, files: dict[bytes, FileEntry], trees: set[str], root: Path, depth: int
    ) -> list[str]:
        """Put a submodule's files in place of its entry, if its commit is at hand; else say that it is not."""
        commit, place = files[path][1], root / os.fsdecode(path)
        try:
            self.git.borrow_from(place)
            found = self.listing(self.raw_tree(commit))
        except RepositoryProblem:
            return [
                f"the submodule {path_line(path)} is not here: the project does not have its commit {commit[:12]}"
            ]
        if depth >= _MOST_DEPTH:
            return [f"the submodule {path_line(path)} lies too deep in others"]
        del files[path]
        trees |= found.trees
        inside = {path + b"/" + below: entry for below, entry in found.files.items()}
        files |= inside
        notes = []
        for below in [below for below, (mode, _) in inside.items() if mode == SUBMODULE]:
            notes += self._take_in(below, files, trees, root, depth + 1)
        return notes

    def _attributes_in(self, files: Mapping[bytes, FileEntry]) -> bytes:
        oids = {oid for path, (_, oid) in files.items() if path.endswith(_ATTRIBUTES)}
        found = (
            b"\n".join(data for _, data in read_blobs(self.git.call, sorted(oids), _PIECE))
            if oids
            else b""
        )
        with suppress(OSError):
            found += b"\n" + read_regular(
                self.git.repository.common_dir / "info" / "attributes", _PIECE
            )
        return found

    def _name_conversions(self, files: Mapping[bytes, FileEntry]) -> Iterator[str]:
        asked = _CONVERTED.search(self._attributes_in(files))
        if asked:
            yield (
                f".gitattributes asks for {asked[1].decode()}…: guard converts nothing, files are as they were committed"
            )

    def _replace_pointers(self, files: dict[bytes, FileEntry]) -> Iterator[str]:
        if b"filter=lfs" not in self._attributes_in(files):
            return
        oids = sorted({oid for mode, oid in files.values() if mode not in (LINK, SUBMODULE)})
        pointers = {
            oid: found
            for oid, data in read_blobs(self.git.call, oids, _LONGEST_POINTER)
            if (found := _POINTER.fullmatch(data))
        }
        blobs = {oid: self._lfs_blob(found) for oid, found in pointers.items()}
        missing = 0
        for path, (mode, oid) in files.items():
            if oid in blobs:
                blob = blobs[oid]
                missing += blob is None
                files[path] = (mode, blob or oid)
        if missing:
            what = (
                "1 file of Git LFS is a pointer"
                if missing == 1
                else f"{missing} files of Git LFS are pointers"
            )
            yield f"{what}: the project does not have the contents (`git lfs pull` fetches them)"

    def _lfs_blob(self, pointer: "re.Match[bytes]") -> str | None:
        """The blob with the contents that a pointer names, if the project has them and they are right."""
        name, size = pointer[1].decode(), int(pointer[2])
        for lender in self.git.lenders:
            path = lender / "lfs" / "objects" / name[:2] / name[2:4] / name
            with suppress(OSError):
                if not path.is_symlink() and path.is_file() and path.stat().st_size == size:
                    return self._copy_in(path, name, size)
        return None

    def _copy_in(self, path: Path, name: str, size: int) -> str | None:
        like = "0" * (64 if self.git.object_format == "sha256" else 40)
        content, blob = hashlib.sha256(), blob_digest(like, size)
        for piece in _pieces(path):
            content.update(piece)
            blob.update(piece)
        if content.hexdigest() != name:
            return None
        self.git.write_pieces(blob.hexdigest(), "blob", size, _pieces(path))
        return blob.hexdigest()


def _read_commit(objects: Objects, commit: str) -> str:
    with explain_unreadable(f"the commit {commit}"):
        line = objects.read(commit, "commit").partition(b"\n")[0]
    if not line.startswith(b"tree "):
        raise RepositoryProblem(f"the commit {commit} names no tree", "run `git fsck`")
    return line[5:].decode("ascii", "replace")


def _read_tree(git: OwnGit, tree: str) -> TreeListing:
    """List a tree, one level of folders at a time; every object is held against its id."""
    files: dict[bytes, FileEntry] = {}
    trees, ahead = set[str](), [(b"", tree)]
    while ahead:
        level, ahead = ahead, []
        found = _read_level(git, level)
        trees |= found.keys()
        # A few small trees that name each other can hold more paths than any machine has memory for.
        if len(files) + sum(len(found[oid]) for _, oid in level) > _MOST_FILES:
            raise RepositoryProblem(
                f"the tree {tree} has more than {_MOST_FILES} files and folders",
                "look at the commit: a tree can be made to unfold without end",
            )
        for prefix, oid in level:
            for mode, name, below in found[oid]:
                if mode in (FOLDER, b"040000"):
                    ahead.append((prefix + name + b"/", below))
                else:
                    files[prefix + name] = (mode, below)
    return TreeListing(files, frozenset(trees))


def _read_level(
    git: OwnGit, level: list[tuple[bytes, str]]
) -> dict[str, list[tuple[bytes, bytes, str]]]:
    places = {oid: prefix for prefix, oid in reversed(level)}
    answer, at = git.call("cat-file", "--batch", stdin="\n".join(places).encode()), 0
    found: dict[str, list[tuple[bytes, bytes, str]]] = {}
    for oid, prefix in places.items():
        end = answer.index(b"\n", at)
        head, at = answer[at:end].split(b" "), end + 1
        with explain_unreadable(f"the folder {path_line(prefix.rstrip(b'/') or b'.')}"):
            if len(head) != 3:
                raise ObjectUnreadable(MISSING)
            data = answer[at : at + int(head[2])]
            at += len(data) + 1
            if head[1] != b"tree" or not _is_named(data, oid):
                raise ObjectUnreadable(DAMAGED)
            found[oid] = _parse_tree(data, len(oid) // 2)
    return found


def _is_named(data: bytes, oid: str) -> bool:
    digest = blob_digest(oid, len(data), "tree")
    digest.update(data)
    return digest.hexdigest() == oid


def _parse_tree(data: bytes, id_bytes: int) -> list[tuple[bytes, bytes, str]]:
    entry = rb"([0-7]+) ([^\0/]+)\0(.{%d})" % id_bytes
    if not re.fullmatch(rb"(?:%s)*" % entry, data, re.DOTALL):
        raise ObjectUnreadable(DAMAGED)
    return [(mode, name, oid.hex()) for mode, name, oid in re.findall(entry, data, re.DOTALL)]


def _clear_the_way(files: dict[bytes, FileEntry], wins: set[bytes]) -> None:
    """Remove files that stand where others need a folder, and folders that stand where a file won."""
    folders = {parent for path in files for parent in parents_of(path)}
    for path in folders & files.keys():
        if path not in wins:
            del files[path]
            continue
        for below in [below for below in files if below.startswith(path + b"/")]:
            del files[below]


def parents_of(path: bytes) -> Iterator[bytes]:
    """The folders that a path lies in, from the nearest on."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def _pieces(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        while piece := file.read(_PIECE):
            yield piece
