"""Read what differs between two commits, and sort it into code, tests and what steers them."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from posixpath import basename, dirname, isabs, join, normpath

from guard.core.prove.file_roles import (
    ChangedPath,
    FileChanges,
    FileRoles,
    sort_changes,
)
from guard.core.prove.project_tables import (
    WORKSPACES,
    dependency_part,
    graft,
    has_fewer_packages,
    steering_part,
)
from guard.core.prove.reach import count_patches, may_reach_out
from guard.core.prove.runners import keeps_files_apart, package_scripts
from guard.core.prove.trail import (
    LINK,
    PACKAGING,
    Steering,
    count_asking,
    count_equal_to_all,
    find_steering,
    hides_library,
    hides_source,
    inner_tests,
    is_compiled,
    is_data,
    is_installed,
    may_hold_tests,
)
from guard.git.reader import RepositoryReader
from guard.snapshots.objects import read_blobs

_ABSENT = "000000"
_MOST_RECIPE_BYTES = 256 * 1024
_MOST_CODE_BYTES = 8 * 1024 * 1024
_MOST_NAMES = 40
_MOST_NAMED = 20
_ENTRY_POINTS = (*PACKAGING, "entry_points.txt")
_SHORTEST_ROOT = 6
"""The path of a shorter root, such as `/app`, could stand anywhere."""
_ASKS = (
    "test|TEST|GUARD_|_ACTIONS|CI|frame|stack|assert|argv|deps|require.main|__main__|global|window"
    "|cwd|PWD|__file__|__eq__"
)
"""What git looks for before guard reads a file: its words, and not all of its lines."""


@dataclass(frozen=True)
class Entry:
    """A path that differs: what was there and what is there, as git names it; None for nothing."""

    path: str
    before: tuple[str, str] | None
    """The mode and the id of the object."""
    after: tuple[str, str] | None

    @property
    def changed(self) -> ChangedPath:
        if self.before is None:
            return ChangedPath(self.path, "added")
        return ChangedPath(self.path, "deleted" if self.after is None else "changed")


@dataclass(frozen=True)
class TreeDiff:
    """The difference of two commits; `base` None stands for the time before the first one."""

    git: RepositoryReader
    base: str | None
    head: str
    command: str
    globs: tuple[str, ...]
    foreign: tuple[str, ...] = ()
    """Commits of others that came with the work: a test that is as they have it was not changed by the work."""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """All paths that differ, but for tests and what steers them that are as a commit of others has them."""
        if not self.foreign or self.base is None:
            return self._all_entries
        changed = [self._changed_since(commit) for commit in self.foreign]

        def is_own(path: str) -> bool:
            return self.roles.role(path) == "code" or all(path in paths for paths in changed)

        return tuple(entry for entry in self._all_entries if is_own(entry.path))

    def _changed_since(self, commit: str) -> set[str]:
        words = ("-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", commit, self.head)
        return set(map(os.fsdecode, self.git.ask("diff-tree", *words).split(b"\0")))

    @cached_property
    def _all_entries(self) -> tuple[Entry, ...]:
        if self.base is None:
            listed = self.git.ask("ls-tree", "-r", "-z", self.head).split(b"\0")
            return tuple(_listed(line) for line in listed if line)
        fields = self.git.ask(
            "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-ext-diff", self.base, self.head
        ).split(b"\0")
        return tuple(
            _entry(raw, path) for raw, path in zip(fields[::2], fields[1::2], strict=False)
        )

    @cached_property
    def roles(self) -> FileRoles:
        found = self._steering
        named = found.named | self._data_of_tests()
        return FileRoles(self.command, self.globs, named, found.modules, found.linked)

    @cached_property
    def files(self) -> FileChanges:
        found = sort_changes(
            (entry.changed for entry in self.entries), self.roles, self._steers, self._depends
        )
        doubts = tuple(dict.fromkeys(self._doubts()))[:_MOST_NAMED]
        return replace(
            found,
            doubts=doubts,
            shadowed=self._shadowed(found),
            reaching=tuple(self._find_reaching(found)),
        )

    def _find_reaching(self, found: FileChanges) -> Iterator[str]:
        scripts = package_scripts(self.read(self.head, "package.json"))
        is_isolated = keeps_files_apart(self.command, scripts)
        for path in (*found.changed_modules, *found.new_modules):
            text = self.read(self.head, path)
            if text is not None and may_reach_out(
                path, text.decode(errors="replace"), is_isolated=is_isolated
            ):
                yield path
        # Code that changes other code does so only once a test has loaded it, which the old tests may not do.
        if found.new_modules or found.changed_modules:
            yield from self._find_patching(set(found.code))

    def _find_patching(self, code: set[str]) -> Iterator[str]:
        """Yield the files of Python in which code changes what it has imported at more places than before."""
        entries = [one for one in self.entries if one.path in code and one.path.endswith(".py")]
        sides = [side for one in entries for side in (one.before, one.after) if side is not None]
        oids = sorted({oid for _, oid in sides})
        texts = {oid: data.decode(errors="replace") for oid, data in self._read_blobs(oids)}
        for one in entries:
            before, after = (
                count_patches(texts.get(side[1], "")) if side is not None else 0
                for side in (one.before, one.after)
            )
            if after > before:
                yield one.path

    def _read_blobs(self, oids: list[str]) -> Iterator[tuple[str, bytes]]:
        return read_blobs(self.git.ask, oids, _MOST_CODE_BYTES) if oids else iter(())

    @cached_property
    def _steering(self) -> Steering:
        return find_steering(self.command, self._baseline, self._read_baseline)

    @cached_property
    def _baseline(self) -> dict[str, str]:
        """Return the mode of each file of the baseline."""
        if self.base is None:
            return {}
        listed = self.git.ask("ls-tree", "-r", "-z", self.base).split(b"\0")
        entries = (line.partition(b"\t") for line in listed if line)
        return {os.fsdecode(path): meta[:6].decode() for meta, _, path in entries}

    def _read_baseline(self, path: str) -> str | None:
        data = self.read(self.base, path, _MOST_RECIPE_BYTES)
        return None if data is None else data.decode(errors="replace")

    def _data_of_tests(self) -> set[str]:
        """Return the files of data that differ and that tests of the baseline name."""
        if self.base is None:
            return set()
        roles = FileRoles(self.command, self.globs)
        changed = [entry.path for entry in self._all_entries if entry.before is not None]
        data = [path for path in changed if is_data(path) and roles.role(path) == "code"]
        found = set()
        for path in data[:_MOST_NAMES]:
            words = ("grep", "-lz", "-F", "-e", basename(path), self.base)
            listed = self.git.ask(*words, codes=(0, 1)).split(b"\0")
            names = (os.fsdecode(name).partition(":")[2] for name in listed if name)
            if any(roles.role(name) == "test" for name in names):
                found.add(path)
        return found

    def _shadowed(self, found: FileChanges) -> tuple[str, ...]:
        """Return the unchanged tests that a file that came or went, or a project file, may hide from the runner."""
        code = set(found.code)
        shapes = [entry for entry in self._all_entries if not (entry.before and entry.after)]
        folders = {dirname(entry.path) for entry in shapes if entry.path in code} - {""}
        if found.dependency_files:
            folders = {""}
        changed = {entry.path for entry in self._all_entries}
        return tuple(
            path
            for path in self._baseline
            if path not in changed
            and any(not folder or path.startswith(f"{folder}/") for folder in folders)
            and self.roles.is_module(path)
        )

    def _doubts(self) -> Iterator[str]:
        """Say of the code that differs what passing tests do not settle."""
        found = self._steering
        for entry in self.entries:
            path = entry.path
            if path in found.code:
                yield f"{path} steers the tests, and may be code as well"
            elif basename(path) in WORKSPACES and self._leaves_packages_out(path):
                yield f"{path} names fewer packages, and the tests of the others may not be run"
            elif entry.after and is_compiled(path) and self._hides_source(path):
                yield f"{path} is compiled, and may hide its source"
            elif entry.after and entry.after[0] == LINK and self._leads_out(path):
                yield f"{path} is a link out of the tree"
            elif entry.before is None and hides_library(path, self._baseline):
                yield f"{path} takes the name of a library that tests are run with"
            elif entry.after and is_installed(path) and self.roles.role(path) == "code":
                yield f"{path} lies where packages are installed"
            elif basename(path) in _ENTRY_POINTS and self._adds(path, b"pytest11"):
                yield f"{path} names a plugin of pytest"
            elif entry.before and entry.after and self._has_lost_tests(path, found.has_doctests):
                yield f"tests inside of {path} are changed or gone"
        yield from self._asking()
        yield from (f"{path} names the folder of the work tree" for path in self._reaching())

    def _hides_source(self, path: str) -> bool:
        return hides_source(path, self.read(self.head, path) or b"")

    def _leads_out(self, path: str) -> bool:
        target = os.fsdecode(self.read(self.head, path) or b"")
        place = normpath(join(dirname(path), target))
        return isabs(target) or place == ".." or place.startswith("../")

    def _adds(self, path: str, word: bytes) -> bool:
        before, after = self.read(self.base, path) or b"", self.read(self.head, path) or b""
        return after.count(word) > before.count(word)

    def _leaves_packages_out(self, path: str) -> bool:
        return has_fewer_packages(path, self.read(self.base, path), self.read(self.head, path))

    def _has_lost_tests(self, path: str, has_doctests: bool) -> bool:
        if self.roles.role(path) != "code" or not may_hold_tests(path, has_doctests):
            return False
        texts = [self.read(commit, path) or b"" for commit in (self.base, self.head)]
        before, after = (
            Counter(inner_tests(path, text.decode(errors="replace"), has_doctests))
            for text in texts
        )
        return bool(before - after)

    def _asking(self) -> Iterator[str]:
        """Say which files of code have new lines that ask about their tests, or objects that pass all of them."""
        if self.base is None:
            return
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--text", "-G", _ASKS)
        for name in self.git.ask(*words, self.base, self.head).split(b"\0"):
            path = os.fsdecode(name)
            if name and self.roles.role(path) == "code" and not is_data(path):
                before, after = self.read(self.base, path) or b"", self.read(self.head, path) or b""
                if count_asking(after) > count_asking(before):
                    yield f"{path} asks whether it is tested"
                if count_equal_to_all(after) > count_equal_to_all(before):
                    yield f"{path} has objects that equal everything"

    def _reaching(self) -> Iterator[str]:
        """Yield the files in which the path of the work tree is new: its code could be tested in place of the committed one."""
        root = os.fsencode(self.git.repository.root)
        words = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--text")
        if self.base is None or len(root) < _SHORTEST_ROOT:
            return
        named = f"-S{os.fsdecode(root)}"
        for name in self.git.ask(*words, named, self.base, self.head).split(b"\0"):
            path = os.fsdecode(name)
            if name and not is_data(path):
                before, after = self.read(self.base, path) or b"", self.read(self.head, path) or b""
                if after.count(root) > before.count(root):
                    yield path

    def read(self, commit: str | None, path: str, most: int = _MOST_CODE_BYTES) -> bytes | None:
        """Return a file of a commit; None if there is none, or it is too large to be a project file."""
        if commit is None:
            return None
        name = os.fsencode(f"{commit}:{path}\n")
        found = self.git.ask("cat-file", "--batch-check", stdin=name).split()
        if len(found) != 3 or found[1] != b"blob" or int(found[2]) > most:
            return None
        return self.git.ask("cat-file", "blob", found[0].decode())

    def _steers(self, path: str) -> bool:
        before, after = self.read(self.base, path), self.read(self.head, path)
        return bool(steering_part(path, before) != steering_part(path, after))

    def _depends(self, path: str) -> bool:
        before, after = self.read(self.base, path), self.read(self.head, path)
        return bool(dependency_part(path, before) != dependency_part(path, after))

    def old_tests(self) -> tuple[list[bytes], dict[bytes, bytes]]:
        """Return the paths that HEAD's tree takes from the baseline's, and contents made of both, to have its tests."""
        after = {entry.path for entry in self.entries if entry.after is not None}
        partly = [path for path in self.files.steering if self.roles.role(path) == "code"]
        grafted = {
            os.fsencode(path): graft(
                path, self.read(self.head, path) or b"", self.read(self.base, path)
            )
            for path in partly
            if path in after
        }
        return [os.fsencode(entry.path) for entry in self._not_code()], grafted

    def old_code(self) -> list[bytes]:
        """Return the paths that HEAD's tree takes from the baseline's to have its code."""
        kept = {entry.path for entry in self._not_code()}
        return [os.fsencode(entry.path) for entry in self.entries if entry.path not in kept]

    def _not_code(self) -> list[Entry]:
        return [entry for entry in self.entries if self.roles.role(entry.path) != "code"]


def _entry(raw: bytes, path: bytes) -> Entry:
    before_mode, after_mode, before, after, _ = raw.decode().lstrip(":").split()
    return Entry(
        os.fsdecode(path),
        None if before_mode == _ABSENT else (before_mode, before),
        None if after_mode == _ABSENT else (after_mode, after),
    )


def _listed(line: bytes) -> Entry:
    meta, _, path = line.partition(b"\t")
    mode, _, oid = meta.decode().split()
    return Entry(os.fsdecode(path), None, (mode, oid))
