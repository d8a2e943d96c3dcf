"""Which of the paths that an iteration left may be committed, and why the others may not."""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from guard.core.base.paths import path_line, spell
from guard.core.base.text import fit_line
from guard.core.rescue.secrets import (
    SENSITIVE_NAME,
    added_secrets,
    has_sensitive_name,
    is_allowed,
    secrets_in,
    told,
)
from guard.core.rescue.settings import SnapshotLimits
from guard.core.snapshots.paths import GITLINK, folders_above, is_refused_by_git, is_relative
from guard.core.snapshots.snapshot import HeldBack
from guard.errors import RepositoryProblem
from guard.rescue.ignore_rules import Hidden, hidden
from guard.rescue.moves import half_moves
from guard.snapshots.fast_import import Listing
from guard.snapshots.objects import blobs
from guard.snapshots.project import Project
from guard.snapshots.shadow import Shadow
from guard.snapshots.take import Taken

_ENCODING = "working-tree-encoding"
_LINK = b"120000"
NO_FILTER = (b"unspecified", b"unset", b"set", b"")


@dataclass(frozen=True)
class CommitSelection:
    """What a commit would add or change, what it would delete, and what it leaves out."""

    add: tuple[bytes, ...]
    delete: tuple[bytes, ...]
    held_back: tuple[HeldBack, ...]
    moved: int = 0
    """How many of the deleted ones are among those that are added, under another name."""
    ignored: int = 0
    """How many other files were written and are ignored."""


class Planner:
    """Asks the snapshot first, then git, then looks for secrets."""

    def __init__(
        self,
        project: Project,
        shadow: Shadow,
        taken: Taken,
        committed: Listing,
        limits: SnapshotLimits,
        since: datetime | None = None,
    ) -> None:
        self._project, self._shadow = project, shadow
        self._taken, self._committed, self._limits = taken, committed, limits
        self._since = since
        self._roots: dict[bytes, bool] = {}

    def plan(self, paths: Sequence[bytes]) -> CommitSelection:
        """Every path in one of three places, but for those that have vanished and were never committed."""
        named = self._files_of(paths)
        held = {path: why for path in named if (why := self._obvious(path))}
        gone = self._taken.absent | self._taken.folders
        delete = [path for path in named if path not in held and path in gone]
        present = [path for path in named if path not in held and path not in gone]
        held |= self._ignored(present) | dict(self._secrets(present))
        held |= self._converted([path for path in present if path not in held])
        add = {path: None for path in present if path not in held}
        delete = [path for path in delete if path in self._committed]
        known = (self._project, self._shadow, self._taken, self._committed)
        held |= half_moves(*known, delete, add, held)
        concealed = self._hidden(named, [*add, *delete, *held])
        held |= concealed.by_new_rules
        there = {self._taken.kept[path].oid for path in add}
        return CommitSelection(
            add=tuple(add),
            delete=tuple(path for path in delete if path not in held),
            moved=sum(self._committed[path][1] in there for path in delete),
            ignored=concealed.others,
            held_back=tuple(
                HeldBack(path=path_line(path), why=fit_line(held[path])) for path in sorted(held)
            ),
        )

    def _hidden(self, named: Sequence[bytes], changed: Sequence[bytes]) -> Hidden:
        known = self._committed.keys() | set(named)
        return hidden(self._project, self._taken.kept, known, set(changed), self._since)

    def _files_of(self, paths: Sequence[bytes]) -> list[bytes]:
        """A new folder stands for the files in it, as far as they are not ignored."""
        folders = self._taken.folders.difference(self._committed)
        new = {path for path in folders if not self._is_nested(path)}
        inside = [
            path
            for path in (self._taken.kept if new else ())
            if any(folder in new for folder in folders_above(path)) and not self._is_nested(path)
        ]
        wanted = frozenset(inside).difference(self._ignored(inside))
        return sorted(wanted.union(path for path in paths if path not in new))

    def _obvious(self, path: bytes) -> str | None:
        taken = self._taken
        if not is_relative(path):
            return "not a path in the work tree"
        if self._is_guards(path):
            return "guard's own state"
        if self._is_nested(path):
            return "nested_repository"
        passed_over = [taken.passed_over.get(folder) for folder in folders_above(path)]
        if any(passed_over) and path not in self._committed:
            return f"rebuilt: {next(filter(None, passed_over))}"
        if any(is_refused_by_git(name) for name in path.split(b"/")):
            return "name: git refuses it"
        if path in taken.trouble:
            return f"not_saved: {taken.trouble[path]}"
        if path in taken.kept and taken.kept[path].size > self._limits.commit_max_file_bytes:
            return f"too_large: {taken.kept[path].size} bytes"
        known = path in taken.kept or path in taken.absent or path in taken.folders
        return None if known else "not_saved: it came or went meanwhile"

    def _is_guards(self, path: bytes) -> bool:
        """A workspace may lie in the work tree."""
        root = os.fsencode(self._project.repository.root)
        own = os.fsencode(self._shadow.path.parent)
        return os.path.join(root, path, b"").startswith(os.path.join(own, b""))

    def _is_nested(self, path: bytes) -> bool:
        committed = self._committed
        is_gitlink = path in committed and committed[path][0] == GITLINK
        return is_gitlink or any(map(self._has_git_dir, (*folders_above(path), path)))

    def _has_git_dir(self, folder: bytes) -> bool:
        if folder not in self._roots:
            root = os.fsencode(self._project.repository.root)
            self._roots[folder] = os.path.lexists(os.path.join(root, folder, b".git"))
        return self._roots[folder]

    def _ignored(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        if not paths:
            return {}
        # `check-ignore` refuses literal pathspecs; behind `./` no name can be taken for anything but a name.
        asking = self._project.with_variables(GIT_LITERAL_PATHSPECS="0")
        asked = listed(b"./" + path for path in paths)
        found = asking.call("check-ignore", "-z", "--stdin", stdin=asked, codes=(0, 1))
        return {path[len(b"./") :]: "ignored" for path in found.split(b"\0")[:-1]}

    def _converted(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """What a program of the user's would have to convert, or git itself cannot."""
        if not paths:
            return {}
        words = ("check-attr", "-z", "--stdin", "filter", _ENCODING)
        fields = self._project.call(*words, stdin=listed(paths)).split(b"\0")[:-1]
        triples = zip(fields[::3], fields[1::3], fields[2::3], strict=True)
        named = [triple for triple in triples if triple[2] not in NO_FILTER]
        held = {
            path: f"filter: {path_line(value)}" for path, name, value in named if name == b"filter"
        }
        for path, name, value in named:
            if name != b"filter" and path not in held and not self._can_be_encoded(path):
                held[path] = f"encoding: not {path_line(value)}"
        return held

    def _can_be_encoded(self, path: bytes) -> bool:
        """Git says no only when it is to write the object."""
        kept = self._taken.kept[path]
        data = self._shadow.call("cat-file", "blob", kept.oid)
        try:
            words = ("hash-object", "-w", f"--path={os.fsdecode(path)}", "--stdin")
            self._project.call(*words, stdin=data)
        except RepositoryProblem:
            return False
        return True

    def _secrets(self, paths: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        named: dict[str, list[bytes]] = defaultdict(list)
        for path in paths:
            if self._is_sensitive(path) and not self._allows(SENSITIVE_NAME, path):
                yield path, f"secret: {SENSITIVE_NAME}"
            else:
                named[self._taken.kept[path].oid].append(path)
        for oid, data in blobs(self._shadow.call, list(named)):
            for path in named[oid] if next(secrets_in(data), None) is not None else ():
                found = added_secrets(data, self._before(path))
                hits = [hit for hit in found if not self._allows(hit.rule, path)]
                if hits:
                    yield path, f"secret: {told(hits)}"

    def _is_sensitive(self, path: bytes) -> bool:
        """A file that is committed already has its name by the user's own choice."""
        is_new = path not in self._committed and self._taken.kept[path].mode != _LINK
        return is_new and has_sensitive_name(path)

    def _allows(self, rule: str, path: bytes) -> bool:
        return is_allowed(rule, spell(path), self._limits.allow_secrets)

    def _before(self, path: bytes) -> bytes:
        _mode, oid = self._committed.get(path, (b"", ""))
        return self._project.call("cat-file", "blob", oid) if oid else b""


def listed(paths: Iterable[bytes]) -> bytes:
    """Paths for the input of a git command."""
    return b"".join(path + b"\0" for path in paths)
