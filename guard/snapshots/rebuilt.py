"""Decide what of the folders that a tool may rebuild is left out of a snapshot.

Only what git ignores there, and ignored by the rules that were in force at the baseline too: what git lists is work, wherever
it lies, and a rule may be the agent's. Each repository inside the work tree is asked for itself. Where git cannot tell,
nothing is left out.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from pathlib import Path

from guard.core.base.first_use import dataclass
from guard.core.snapshots.paths import GITLINK, folders_above, tree_path
from guard.errors import RepositoryProblem, StoreUnavailable
from guard.git.ignore_rules import find_ignored_paths
from guard.git.locate import Repository, repository_at
from guard.git.reader import RepositoryReader
from guard.git.run import find_config, read_config
from guard.snapshots.fast_import import parse_tree
from guard.snapshots.git_state import MOST_FOLDERS, IndexEntry, ProjectIndex
from guard.snapshots.objects import read_blobs
from guard.snapshots.project import Project
from guard.snapshots.read_file import Content, Large, read_entry
from guard.snapshots.shadow import Shadow, scratch_folder
from guard.snapshots.stat_cache import KeptFile, RulesMark
from guard.snapshots.walk import list_folder, open_path
from guard.system.foreign_files import read_regular
from guard.system.private_files import close

_MOST_RULE_BYTES = 4 * 1024**2
_RULES = b".gitignore"
_OUTSIDE = {"core.ignorecase": "bool", "core.excludesfile": "path"}
_ANY_OUTSIDE = r"^core\.(ignorecase|excludesfile)$"


@dataclass(frozen=True)
class OutsideRules:
    """What decides about ignored paths and lies outside of the work tree, by git's own settings."""

    settings: Mapping[str, str]
    digest: str


def read_outside_rules(project: Project) -> OutsideRules:
    """Read the user's own excludes file, wherever git's settings say it is, and how git compares names."""
    repository, environ = project.repository, project.environ
    try:
        found = {
            # Most users set neither, which one question tells.
            key: read_config(key, repository.git_dir, environ, _OUTSIDE[key])
            for key in find_config(_ANY_OUTSIDE, repository.git_dir, environ)
        }
    except RepositoryProblem:
        # Git cannot tell what it ignores either, so nothing is left out.
        return OutsideRules(_NO_SETTINGS, "")
    folds, named = found.get("core.ignorecase") or "false", found.get("core.excludesfile")
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME", ""), ".config")
    path = os.path.join(repository.root, named or os.path.join(home, "git", "ignore"))
    data = b""
    try:
        data = read_regular(Path(path), _MOST_RULE_BYTES)
    except (OSError, ValueError):
        path = ""
    digest = hashlib.sha256(b"\0".join((folds.encode(), os.fsencode(path), data))).hexdigest()
    return OutsideRules({"core.ignoreCase": folds, "core.excludesFile": path}, digest)


@dataclass
class LeftOut:
    """What is left out, and what is kept of it all the same."""

    paths: set[bytes] = field(default_factory=set)
    hidden: set[bytes] = field(default_factory=set)
    """What git ignores only since the baseline; it is not left out."""
    tracked: set[bytes] = field(default_factory=set)
    """Files in both that git tracks, and the rules that lie in such a folder itself."""
    submodules: set[bytes] = field(default_factory=set)
    """Folders in it that git tracks as repositories of their own."""
    unread: dict[bytes, str] = field(default_factory=dict)
    """Indexes that could not be read, so that tracked files may be missing."""

    def has(self, path: bytes) -> bool:
        return path in self.paths or _lies_in(path, self.paths)


@dataclass
class RebuiltFolders:
    """Asks git about the folders of one work tree; `mark` is what is known of the rules at its last baseline.

    If it `trusts` the rules of the moment, because this is a baseline, they alone decide.
    """

    project: Project
    shadow: Shadow
    kept: Mapping[bytes, KeptFile]
    """The files that the snapshot has already."""
    mark: RulesMark | None
    trusts: bool

    @cached_property
    def _outside(self) -> OutsideRules:
        return read_outside_rules(self.project)

    def find_left_out(self, folders: Iterable[bytes], nested: Collection[bytes]) -> LeftOut:
        """Find what can be left out: of these folders, or of what lies directly in them."""
        found = LeftOut()
        for base, inside in _by_repository(folders, frozenset(nested)).items():
            try:
                repository = self._repository(base)
            except (OSError, RepositoryProblem):
                continue
            self._look(_Asked(base, repository), inside, found)
        return found

    def _repository(self, base: bytes) -> Repository:
        return repository_at(self._root / os.fsdecode(base)) if base else self.project.repository

    @property
    def _root(self) -> Path:
        return self.project.repository.root

    def _look(self, asked: "_Asked", folders: list[bytes], found: LeftOut) -> None:
        ignored = self._find_ignored(asked, dict.fromkeys(folders, True))
        entries: dict[bytes, dict[bytes, bool]] = {}
        for folder in folders:
            if folder not in ignored:
                listed = list_folder(self._root, folder)
                entries[folder] = {folder + b"/" + name: is_dir for name, is_dir in listed.items()}
        every = {path: is_dir for inside in entries.values() for path, is_dir in inside.items()}
        ignored |= self._find_ignored(asked, every, found.hidden)
        # A folder of which nothing is kept is named once.
        whole = {
            folder for folder, inside in entries.items() if inside and inside.keys() <= ignored
        }
        left = {path for path in ignored if path.rpartition(b"/")[0] not in whole} | whole
        found.paths |= left
        # A later snapshot has to know by which rules these were left out.
        rules = {folder + b"/" + _RULES for folder in entries}
        found.tracked |= rules & every.keys()
        if left or found.hidden:
            self._keep_tracked(asked, folders, found)

    def _keep_tracked(self, asked: "_Asked", folders: list[bytes], found: LeftOut) -> None:
        inner = sorted(map(asked.inner, folders))
        for entry in (*self._list_staged(asked, inner, found), *self._list_committed(asked, inner)):
            path = asked.outer(entry.path)
            if found.has(path) or path in found.hidden or _lies_in(path, found.hidden):
                (found.submodules if entry.mode == GITLINK else found.tracked).add(path)

    def _list_staged(
        self, asked: "_Asked", folders: list[bytes], found: LeftOut
    ) -> list[IndexEntry]:
        try:
            return ProjectIndex(self.shadow, asked.repository).list_tracked(folders)
        except StoreUnavailable as error:
            if self.project.deadline.has_passed():
                raise
            found.unread[asked.outer(b".git/index")] = error.message
        return []

    def _list_committed(self, asked: "_Asked", folders: list[bytes]) -> list[IndexEntry]:
        """List what the last commit has there: an index may be gone, or have been told to forget a file."""
        limit = self.project.with_brief_deadline().deadline.left()
        reader = RepositoryReader(asked.repository, self.project.environ, limit)
        with suppress(RepositoryProblem):
            named = map(os.fsdecode, folders if len(folders) <= MOST_FOLDERS else ())
            listed = reader.ask("ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", *named)
            return [
                IndexEntry(mode, oid, 0, path) for path, (mode, oid) in parse_tree(listed).items()
            ]
        return []

    def _find_ignored(
        self, asked: "_Asked", paths: Mapping[bytes, bool], hidden: set[bytes] | None = None
    ) -> set[bytes]:
        """Find which of these paths, each a folder or not, git ignores now and would have ignored at the baseline.

        What it ignores only now goes into `hidden`.
        """
        if not paths:
            return set()
        names = [asked.inner(path) for path in paths]
        now = self._ask(asked.repository, self._outside.settings, names)
        ignored = {asked.outer(name) for name in now}
        if self.mark is None or self.trusts or not ignored:
            return ignored
        before = self._ignored_then(asked, self.mark, {path: paths[path] for path in ignored})
        if hidden is not None:
            hidden |= ignored - before
        return before

    def find_at_baseline(self, paths: Iterable[bytes]) -> set[bytes]:
        """Find which of these files the snapshot of the last baseline has; all of them if there was none."""
        named = set(paths)
        if self.mark is None or not named:
            return named
        odd = {path for path in named if b"\n" in path}
        places: dict[bytes, bytes | None] = {p: b"worktree/" + tree_path(p) for p in named - odd}
        return odd | self._blobs_then(self.mark, places).keys()

    def _ask(
        self, repository: Repository, settings: Mapping[str, str], names: Iterable[bytes]
    ) -> set[bytes]:
        limit = self.project.with_brief_deadline().deadline.left()
        reader = RepositoryReader(repository, self.project.environ, limit)
        reader = reader.with_settings(settings).with_variable("GIT_LITERAL_PATHSPECS", "0")
        with suppress(RepositoryProblem):
            return set(find_ignored_paths(reader.ask, names).rules)
        return set()

    def _ignored_then(
        self, asked: "_Asked", mark: RulesMark, paths: Mapping[bytes, bool]
    ) -> set[bytes]:
        """Find which of these paths the rules of the baseline ignored: all, if no rule about them has changed since."""
        files = {name for path in paths for name in _rule_files(asked.inner(path))}
        places = {name: b"worktree/" + tree_path(asked.outer(name)) for name in files}
        before = self._blobs_then(mark, {**places, _EXCLUDE: self._place_of_exclude(asked)})
        same_outside = mark.outside == self._outside.digest
        if same_outside and before == self._blobs_now(asked, files):
            return set(paths)
        settings = self._outside.settings if same_outside else _NO_SETTINGS
        try:
            return self._ask_with_rules(asked, before, settings, paths)
        except (OSError, StoreUnavailable):
            return set()

    def _place_of_exclude(self, asked: "_Asked") -> bytes | None:
        """Where a snapshot has the excludes that lie in a git directory."""
        own, inner = self.project.repository, asked.repository
        if inner.common_dir == own.common_dir:
            return b"gitdir/" + _EXCLUDE
        if inner.common_dir == inner.root / ".git":
            return b"nested/" + tree_path(asked.outer(b".git/" + _EXCLUDE))
        with suppress(ValueError):
            module = os.fsencode(inner.common_dir.relative_to(own.git_dir))
            return tree_path(module + b"/" + _EXCLUDE)
        return None

    def _blobs_then(
        self, mark: RulesMark, places: Mapping[bytes, bytes | None]
    ) -> dict[bytes, str]:
        """The blobs of rule files in the baseline's snapshot, as far as they were there."""
        named = [(name, place) for name, place in places.items() if place and b"\n" not in place]
        stdin = b"".join(b"%s:%s\n" % (mark.commit.encode(), place) for _name, place in named)
        answers = self.shadow.call("cat-file", "--batch-check", stdin=stdin).splitlines()
        words = (answer.split() for answer in answers)
        found = zip((name for name, _place in named), words, strict=True)
        return {name: word[0].decode() for name, word in found if word[1:2] == [b"blob"]}

    def _blobs_now(self, asked: "_Asked", files: Iterable[bytes]) -> dict[bytes, str]:
        found = {}
        for name in files:
            path = asked.outer(name)
            kept = self.kept[path].oid if path in self.kept else self._hash(self._root, path)
            if kept:
                found[name] = kept
        exclude = self._hash(asked.repository.common_dir, _EXCLUDE)
        return {**found, _EXCLUDE: exclude} if exclude else found

    def _hash(self, folder: Path, path: bytes) -> str | None:
        with open_path(folder, path) as there:
            content = read_entry(there[0], _MOST_RULE_BYTES) if isinstance(there, tuple) else None
        if isinstance(content, Large):
            close(content.descriptor)
        if not isinstance(content, Content):
            return None
        digest = hashlib.new(self.shadow.object_format, usedforsecurity=False)
        digest.update(b"blob %d\0" % len(content.data) + content.data)
        return digest.hexdigest()

    def _ask_with_rules(
        self,
        asked: "_Asked",
        blobs: Mapping[bytes, str],
        settings: Mapping[str, str],
        paths: Mapping[bytes, bool],
    ) -> set[bytes]:
        """Ask git in an empty repository that has these rules and no others."""
        data = dict(read_blobs(self.shadow.call, sorted(set(blobs.values()))))
        with scratch_folder(self.shadow.path.parent) as folder:
            git_dir = folder / ".git"
            for name in ("objects", "refs", "info"):
                (git_dir / name).mkdir(parents=True)
            (git_dir / "HEAD").write_bytes(b"ref: refs/heads/none\n")
            for path, is_folder in paths.items():
                place = os.path.join(os.fsencode(folder), asked.inner(path))
                os.makedirs(place if is_folder else os.path.dirname(place), exist_ok=True)
            for rules, blob in blobs.items():
                inside = b".git/" + rules if rules == _EXCLUDE else rules
                with open(os.path.join(os.fsencode(folder), inside), "xb") as file:
                    file.write(data[blob])
            there = Repository(folder, git_dir, git_dir)
            return set(map(asked.outer, self._ask(there, settings, map(asked.inner, paths))))


_EXCLUDE = b"info/exclude"
_NO_SETTINGS = {"core.ignoreCase": "false", "core.excludesFile": ""}


@dataclass(frozen=True)
class _Asked:
    """A repository in the work tree, or the work tree's own, whose base is empty."""

    base: bytes
    repository: Repository

    def inner(self, path: bytes) -> bytes:
        return path[len(self.base) + 1 :] if self.base else path

    def outer(self, name: bytes) -> bytes:
        return self.base + b"/" + name if self.base else name


def _lies_in(path: bytes, folders: Collection[bytes]) -> bool:
    return any(folder in folders for folder in folders_above(path))


def _by_repository(folders: Iterable[bytes], nested: Collection[bytes]) -> dict[bytes, list[bytes]]:
    """Group folders by the innermost repository in which they lie."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for folder in folders:
        bases = [above for above in folders_above(folder) if above in nested]
        found[bases[-1] if bases else b""].append(folder)
    return found


def _rule_files(path: bytes) -> Iterator[bytes]:
    """The files beside a path and above it that can have a rule about it."""
    yield _RULES
    for folder in folders_above(path):
        yield folder + b"/" + _RULES
