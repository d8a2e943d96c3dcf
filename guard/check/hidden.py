"""Find work that the iteration hid from git, by comparing the work tree's snapshot with the baseline's.

Hidden is a file that changed since the baseline, that git does not list, and that is not committed as it lies there: ignored by
a rule of the iteration's that is not committed itself, or taken for unchanged by the index. What a committed rule ignores, what
was ignored before, and folders with rules of their own that a tool makes (caches, reports) are not hidden work.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice

from guard.check.save import rescue_site
from guard.check.subject import CheckSubject
from guard.core.base.paths import spell
from guard.core.iteration.events import DirtyFile
from guard.core.snapshots.paths import folders_above, why_rebuilt, work_tree_path
from guard.core.snapshots.snapshot import Snapshot
from guard.core.work.history import EMPTY_TREES
from guard.errors import RepositoryProblem
from guard.git.content_hash import ContentReader
from guard.git.dirty import Dirty
from guard.git.ignore_rules import find_ignored_paths
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


def find_hidden(subject: CheckSubject, now: Snapshot, dirty: Dirty) -> tuple[DirtyFile, ...]:
    """Return the files that git does not list though the iteration wrote them; none if no baseline was recorded."""
    changed = _changed_since_baseline(subject, now)
    listed = set(dirty.paths(dirty.files))
    candidates = {path: blob for path, blob in changed.items() if path not in listed}
    if not candidates:
        return ()
    search = _HiddenSearch(subject, candidates, changed.keys())
    return tuple(search.files(islice(search.hidden(), _MOST_FOUND)))


def may_hide(subject: CheckSubject) -> bool:
    """Tell, without a snapshot, whether something changed by which git may overlook files, and which no commit shows."""
    began = subject.baseline.at
    if began is None:
        return False
    root, common = subject.repository.root, subject.repository.common_dir
    places = [
        common / "config",
        *(common / "info" / name for name in ("", "exclude", "attributes")),
    ]
    if any(_is_written_since(os.fsencode(place), began) for place in places):
        return True
    if _has_outside_changed(subject):
        return True
    words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    for name in subject.git.ask(*words).split(b"\0"):
        rules = name if name.endswith(b".gitignore") else name + b".gitignore"
        if name.endswith((b"/", b".gitignore")) and _is_written_since(
            os.path.join(os.fsencode(root), rules), began
        ):
            return True
    return False


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


def _changed_since_baseline(subject: CheckSubject, now: Snapshot) -> dict[bytes, str]:
    """Return the files that were written since the baseline, each with the id of its bytes."""
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
    found = ((work_tree_path(path), raw.split(b" ")[3].decode()) for raw, path in pairs)
    return dict(islice(found, _MOST_COMPARED))


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

    def hidden(self) -> Iterator[bytes]:
        there = {path: blob for path, blob in self.candidates.items() if not self._is_apart(path)}
        tracked = {path: blob for path, blob in there.items() if path in self._index}
        yield from sorted(self._not_as_in_index(tracked))
        others = [path for path in there if path not in self._index]
        ignored = find_ignored_paths(self._asking.ask, others).sources
        for path in others:
            if path not in ignored or self._is_new_rule(ignored[path]):
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
    def _index(self) -> dict[bytes, str]:
        entries = (
            line.partition(b"\t") for line in self._git.ask("ls-files", "-s", "-z").split(b"\0")
        )
        return {path: words.split(b" ")[1].decode() for words, _, path in entries if path}

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
        # In a repository of its own, or in a folder that a tool makes anew.
        return any(
            why_rebuilt(os.path.basename(folder), ()) is not None or self._has(folder, b".git")
            for folder in folders_above(path)
        )

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

    def _is_new_rule(self, source: bytes) -> bool:
        place = os.path.join(self._root, source)
        exclude = os.fsencode(self.subject.repository.common_dir / "info/exclude")
        if os.path.realpath(place) == os.path.realpath(exclude):
            began = self.subject.baseline.at
            return began is not None and _is_written_since(place, began)
        if os.path.isabs(source) or source not in self.changed:
            return self._is_outside_new and not self._is_inside(place)
        return not self._is_committed(source) and not self._is_tools_own(source)

    def _is_inside(self, place: bytes) -> bool:
        return os.path.normpath(place).startswith(self._root + b"/")

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
