"""Find work that the iteration hid from git, by comparing the work tree's snapshot with the baseline's.

Hidden is a file that changed since the baseline, that git does not list, and that is not committed as it lies there: ignored by
a rule of the iteration's that is not committed itself or that names tracked files too, or taken for unchanged by the index.
What another committed rule ignores, what was ignored before, and folders with rules of their own that a tool makes (caches,
reports) are not hidden work.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from guard.check.save import rescue_site
from guard.check.subject import CheckSubject
from guard.core.base.first_use import dataclass
from guard.core.base.paths import spell
from guard.core.iteration.facts import DirtyFile
from guard.core.snapshots.paths import folders_above, why_rebuilt, work_tree_path
from guard.core.snapshots.snapshot import Snapshot
from guard.core.work.history import EMPTY_TREES
from guard.errors import RepositoryProblem
from guard.git.content_hash import ContentReader
from guard.git.dirty import Dirty
from guard.git.ignore_rules import IgnoreRule, find_ignored_paths
from guard.git.named_files import open_root
from guard.git.reader import RepositoryReader
from guard.git.status import without_filters
from guard.snapshots.inventory import Shelf, open_shelf
from guard.snapshots.rebuilt import read_outside_rules
from guard.snapshots.shadow import SHADOW_FOLDER, ref_in_command
from guard.snapshots.stat_cache import recall_rules

_MOST_COMPARED = 20_000
_MOST_FOUND = 1000
_OWN_RULES = (b"pyvenv.cfg", b"CACHEDIR.TAG")
_REPORTS = (b"htmlcov",)
_EXECUTABLE = b"100755"


def find_hidden(subject: CheckSubject, now: Snapshot, dirty: Dirty) -> tuple[DirtyFile, ...]:
    """Return the files that git does not list though the iteration wrote them; none if no baseline was recorded."""
    changed = _changed_since_baseline(subject, now)
    listed = set(dirty.paths(dirty.files))
    candidates = {path: one.blob for path, one in changed.items() if path not in listed}
    if not candidates:
        return ()
    executable = {path: one.is_executable for path, one in changed.items() if one.has_new_mode}
    search = _HiddenSearch(subject, candidates, changed.keys(), executable)
    return tuple(search.files(islice(search.hidden(), _MOST_FOUND)))


def may_hide(subject: CheckSubject) -> bool:
    """Tell, without a snapshot, whether something changed by which git may overlook files, and which no commit shows."""
    began, repository = subject.baseline.at, subject.repository
    if began is None:
        return False
    places = [
        repository.common_dir / "config",
        repository.git_dir / "config.worktree",
        *(repository.common_dir / "info" / name for name in ("", "exclude", "attributes")),
    ]
    return (
        any(_is_written_since(os.fsencode(place), began) for place in places)
        or _has_outside_changed(subject)
        or _HiddenSearch(subject, {}, ()).has_unlike_index(began)
        or _has_new_rules(subject, began)
        or _has_rules_for_tracked(subject, began)
    )


def _has_new_rules(subject: CheckSubject, began: datetime) -> bool:
    """Whether an ignore file that is itself ignored was written since; others are committed, or listed as changed."""
    root = os.fsencode(subject.repository.root)
    words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    names = subject.git.ask(*words).split(b"\0")
    found = (name if name.endswith(b".gitignore") else name + b".gitignore" for name in names)
    return any(_is_written_since(os.path.join(root, rules), began) for rules in found)


def _has_rules_for_tracked(subject: CheckSubject, began: datetime) -> bool:
    """Whether a tracked ignore file was written since, and any rule names files that are tracked."""
    root = os.fsencode(subject.repository.root)
    names = subject.git.ask("ls-files", "--cached", "-z").split(b"\0")
    rules = (name for name in names if os.path.basename(name) == b".gitignore")
    written = any(_is_written_since(os.path.join(root, name), began) for name in rules)
    return written and bool(_list_ignored_but_tracked(subject.git))


def _list_ignored_but_tracked(git: RepositoryReader) -> list[bytes]:
    names = git.ask("ls-files", "--cached", "--ignored", "--exclude-standard", "-z").split(b"\0")
    return [name for name in names if name]


def _is_written_since(place: bytes, began: datetime) -> bool:
    try:
        return os.stat(place).st_ctime > began.timestamp()
    except OSError:
        return False


def _has_outside_changed(subject: CheckSubject) -> bool:
    """Whether the user's own excludes, or how git compares names, are others than at the baseline."""
    project = rescue_site(subject).project()
    mark = recall_rules(subject.workspace / SHADOW_FOLDER, project.repository.root)
    return mark is not None and mark.outside != read_outside_rules(project).digest


class _ChangedFile(NamedTuple):
    """A file that was written since the baseline, with the id of its bytes."""

    blob: str
    is_executable: bool
    has_new_mode: bool


def _changed_since_baseline(subject: CheckSubject, now: Snapshot) -> dict[bytes, _ChangedFile]:
    before = ref_in_command(subject.baseline.kept or "")
    if before is None or subject.baseline.at is None:
        return {}
    limit = subject.settings.rescue.time_limit_seconds
    with open_shelf(subject.workspace, subject.environ, time_limit=limit) as shelf:
        trees = [_work_tree(shelf, ref) for ref in (before, now.ref)]
        if None in trees:
            raise RepositoryProblem("the baseline's snapshot is gone")
        words = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--diff-filter=AMT")
        fields = shelf.run(*words, *map(str, trees)).stdout.split(b"\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    found = ((work_tree_path(path), _parse_raw(raw)) for raw, path in pairs)
    return dict(islice(found, _MOST_COMPARED))


def _parse_raw(raw: bytes) -> _ChangedFile:
    before, mode, _, blob, kind = raw.split(b" ")
    has_new_mode = kind == b"M" and before[1:] != mode
    return _ChangedFile(blob.decode(), mode == _EXECUTABLE, has_new_mode)


def _work_tree(shelf: Shelf, ref: str) -> str | None:
    commit = shelf.run("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").stdout.strip()
    tree = shelf.run("rev-parse", "--verify", "--quiet", f"{ref}:worktree").stdout.strip()
    empty = (name for name in EMPTY_TREES if len(name) == len(commit))
    return tree.decode() or next(empty, None) if commit else None


@dataclass
class _HiddenSearch:
    subject: CheckSubject
    candidates: Mapping[bytes, str]
    changed: Collection[bytes]
    executable: Mapping[bytes, bool] = field(default_factory=dict)
    """Whether files are executable now, of those that were it not at the baseline, or the other way round."""

    def hidden(self) -> Iterator[bytes]:
        there = {path: blob for path, blob in self.candidates.items() if not self._is_apart(path)}
        tracked = {path: blob for path, blob in there.items() if path in self._index}
        # Under core.fileMode = false git lists no file of which only the mode changed.
        other_mode = {
            path
            for path in tracked.keys() & self.executable.keys()
            if self.executable[path] != (path in self._executable_in_index)
        }
        yield from sorted(self._not_as_in_index(tracked) | other_mode)
        others = [path for path in there if path not in self._index]
        ignored = find_ignored_paths(self._asking.ask, others).rules
        for path in others:
            if path in ignored:
                if self._is_new_rule(ignored[path], path):
                    yield path
            elif not self._is_in_nested_repository(path):
                yield path

    def files(self, paths: Iterator[bytes]) -> Iterator[DirtyFile]:
        root = open_root(self.subject.repository.root)
        try:
            contents = ContentReader(root)
            for path in paths:
                identity, is_tracked = contents.identity(path), path in self._index
                if identity.kind != "missing":
                    yield DirtyFile(
                        path=spell(path),
                        **identity._asdict(),
                        index=None,
                        staged=False,
                        unstaged=is_tracked,
                        untracked=not is_tracked,
                    )
        finally:
            os.close(root)

    @cached_property
    def _root(self) -> bytes:
        return os.fsencode(self.subject.repository.root)

    @cached_property
    def _entries(self) -> list[tuple[bytes, bytes, bytes]]:
        """Return the path, the mode and the blob of each entry of the index."""
        lines = self.subject.git.ask("ls-files", "-s", "-z").split(b"\0")
        parts = ((line.partition(b"\t")[2], line.split(b" ", 2)) for line in lines if line)
        return [(path, mode, blob) for path, (mode, blob, _) in parts]

    @cached_property
    def _index(self) -> dict[bytes, str]:
        return {path: blob.decode() for path, _, blob in self._entries}

    @cached_property
    def _executable_in_index(self) -> set[bytes]:
        return {path for path, mode, _ in self._entries if mode == _EXECUTABLE}

    @cached_property
    def _git(self) -> RepositoryReader:
        return without_filters(self.subject.git)

    @cached_property
    def _asking(self) -> RepositoryReader:
        # Under a setting of the iteration's, other names would match the rules.
        git = self.subject.git.with_variable("GIT_LITERAL_PATHSPECS", "0")
        return git.with_settings({"core.ignoreCase": "false"}) if self._is_outside_new else git

    @cached_property
    def _is_outside_new(self) -> bool:
        return _has_outside_changed(self.subject)

    def _is_apart(self, path: bytes) -> bool:
        # In a submodule, or in a folder that a tool makes anew.
        return any(
            why_rebuilt(os.path.basename(folder), ()) is not None or folder in self._index
            for folder in folders_above(path)
        )

    def _is_in_nested_repository(self, path: bytes) -> bool:
        # Git lists such a repository as one entry.
        return any(self._has(folder, b".git") for folder in folders_above(path))

    def _has(self, folder: bytes, name: bytes) -> bool:
        return os.path.lexists(os.path.join(self._root, folder, name))

    def _not_as_in_index(self, tracked: Mapping[bytes, str]) -> set[bytes]:
        """Return the files whose bytes git would not commit as what the index has for them."""
        unlike = [path for path, blob in tracked.items() if blob != self._index[path]]
        asked = [path for path in unlike if b"\n" not in path and self._is_file(path)]
        if not asked:
            return set()
        names = b"".join(os.path.join(self._root, path) + b"\n" for path in asked)
        blobs = self._git.ask("hash-object", "--stdin-paths", stdin=names).decode().split()
        found = {
            path for path, blob in zip(asked, blobs, strict=False) if blob != self._index[path]
        }
        return found - self._under_filters(found)

    def has_unlike_index(self, began: datetime) -> bool:
        """Tell whether a tracked file was written since whose bytes git would not commit as what the index has."""
        places = ((path, os.path.join(self._root, path)) for path in self._index)
        written = [path for path, place in places if _is_written_since(place, began)]
        root = open_root(self.subject.repository.root)
        try:
            contents = ContentReader(root)
            blobs = {path: contents.blob(path, self._index[path]) or "" for path in written}
        finally:
            os.close(root)
        return bool(self._not_as_in_index(blobs))

    def _is_file(self, path: bytes) -> bool:
        place = os.path.join(self._root, path)
        return os.path.isfile(place) and not os.path.islink(place)

    def _under_filters(self, paths: Collection[bytes]) -> set[bytes]:
        """Return those that a filter converts which is still configured: only that program could tell."""
        if not paths:
            return set()
        stdin = b"".join(path + b"\0" for path in paths)
        fields = self._git.ask("check-attr", "-z", "--stdin", "filter", stdin=stdin).split(b"\0")
        named = dict(zip(fields[::3], fields[2::3], strict=False))
        return {path for path, driver in named.items() if path and self._has_driver(driver)}

    def _has_driver(self, driver: bytes) -> bool:
        if driver in (b"unspecified", b"unset", b"set", b""):
            return False
        name, git = os.fsdecode(driver), self.subject.git
        return any(
            git.line("config", "--get", f"filter.{name}.{key}") for key in ("clean", "process")
        )

    def _is_new_rule(self, rule: IgnoreRule, path: bytes) -> bool:
        place = os.path.join(self._root, rule.file)
        exclude = os.fsencode(self.subject.repository.common_dir / "info/exclude")
        if os.path.realpath(place) == os.path.realpath(exclude):
            began = self.subject.baseline.at
            return began is not None and _is_written_since(place, began)
        if not _lies_above(rule.file, path):
            return self._is_outside_new
        if rule.file not in self.changed or self._is_tools_own(rule.file):
            return False
        return not self._is_committed(rule.file) or rule in self._rules_for_tracked

    @cached_property
    def _rules_for_tracked(self) -> frozenset[IgnoreRule]:
        tracked = _list_ignored_but_tracked(self._asking)
        return frozenset(find_ignored_paths(self._asking.ask, tracked).rules.values())

    def _is_committed(self, source: bytes) -> bool:
        return source in self._index and source not in self._not_as_in_index(
            {source: self.candidates.get(source, "")}
        )

    def _is_tools_own(self, source: bytes) -> bool:
        folder = os.path.dirname(source)
        name = os.path.basename(folder)
        return bool(folder) and (
            name.startswith(b".")
            or name in _REPORTS
            or any(self._has(folder, mark) for mark in _OWN_RULES)
        )


def _lies_above(rules: bytes, path: bytes) -> bool:
    """Whether this is a .gitignore about that path, and not a file that git's settings name."""
    folder, name = os.path.split(rules)
    return name == b".gitignore" and (not folder or path.startswith(folder + b"/"))
